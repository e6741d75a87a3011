/** The pictures of a prompt as thumbnails, with the share of attention on each; the chosen one is drawn in the panes. */

import { fitted } from "../canvas.js";
import { make } from "../dom.js";
import { MAP_NAMES, percent } from "../words.js";

const HEIGHT = 52; // CSS pixels of a thumbnail
const WIDEST = 104;
const NARROWEST = 40;
const EDGE = 8; // of a neighbour, left in sight

export class Filmstrip {
  /** @param {import("./pane.js").Pane[]} panes of A and B */
  constructor(store, panes) {
    Object.assign(this, { store, panes, cells: [], key: "" });
    this.about = make("div", { class: "scope-film-about" });
    this.row = make("div", {
      class: "scope-film-row",
      role: "group",
      "aria-label": "pictures of the prompt",
    });
    this.element = make("div", { class: "scope-film", hidden: true }, this.about, this.row);
    this.row.addEventListener("click", (event) => {
      const picture = event.target.closest("[data-picture]")?.dataset.picture;
      if (picture !== undefined) store.set({ picture: Number(picture), follow: false });
    });
  }

  /** The run whose pictures are shown: A, or B where it has more. */
  get run() {
    const runs = this.panes.map((pane) => pane.run).filter((run) => run?.shots);
    return runs.reduce((most, run) => (run.shots.count > (most?.shots.count ?? 0) ? run : most), null);
  }

  draw() {
    const { run, element, store } = this;
    const was = element.hidden;
    element.hidden = !run?.shots.several;
    if (element.hidden) return;
    this.build(run);
    const shares = this.panes.map(sharesOf);
    const chosen = Math.min(store.state.picture, run.shots.count - 1);
    const what = MAP_NAMES[store.state.map];
    this.about.textContent = `${run.shots.count} pictures; the bars are their shares of the ${what} on pictures at this step`;
    this.cells.forEach((cell, index) => this.show(cell, index, index === chosen, shares, run));
    if (chosen !== this.chosen || was) this.reveal(this.cells[chosen].element);
    this.chosen = chosen;
  }

  show(cell, index, chosen, shares, run) {
    cell.element.setAttribute("aria-pressed", chosen);
    const told = [];
    shares.forEach((share, which) => {
      const bar = cell.bars[which];
      const value = share?.[index];
      bar.element.hidden = value === undefined;
      if (value === undefined) return;
      bar.element.style.setProperty("--share", value.toFixed(3));
      bar.number.textContent = percent(value);
      told.push(`${"AB"[which]} ${percent(value)}`);
    });
    const name = `picture ${run.shots.list[index].name}${told.length ? `: ${told.join(", ")}` : ""}`;
    cell.element.setAttribute("aria-label", name);
    cell.element.title = name;
  }

  /** Thumbnails anew where the run, or what is there of its pictures, is another than before. */
  build(run) {
    const known = run.images.map((image) => (image ? 1 : 0)).join("");
    const key = [run.id, run.shots.count, known, window.devicePixelRatio].join();
    if (key === this.key) return;
    this.key = key;
    this.cells = run.shots.list.map((shot, index) => cellOf(run, shot, index));
    this.row.replaceChildren(...this.cells.map(({ element }) => element));
    this.cells.forEach(({ thumbnail }, index) => drawThumbnail(thumbnail, run, run.shots.list[index]));
  }

  /** Bring a thumbnail into sight within the strip alone: the page must not move. */
  reveal(cell) {
    const [frame, box] = [this.row.getBoundingClientRect(), cell.getBoundingClientRect()];
    if (box.left < frame.left) this.row.scrollLeft += box.left - frame.left - EDGE;
    else if (box.right > frame.right) this.row.scrollLeft += box.right - frame.right + EDGE;
  }
}

/** Of what a pane shows, the share that lies on each picture; null while its map is missing. */
function sharesOf({ run, sums }) {
  if (!run?.steps || !sums) return null;
  const total = sums.reduce((sum, value) => sum + value, 0);
  return sums.map((value) => (total ? value / total : 0));
}

function cellOf(run, shot, index) {
  const thumbnail = make("canvas", { "aria-hidden": "true" });
  const bars = ["a", "b"].map((which) => {
    const number = make("span", {});
    return {
      number,
      element: make("span", { class: `scope-film-bar scope-film-${which}`, hidden: true }, number),
    };
  });
  const name = make("span", { class: "scope-film-name" }, shot.name.replace(", frame ", "·"));
  const box = make("span", { class: "scope-film-box" }, thumbnail, name);
  const element = make(
    "button",
    { type: "button", class: "scope-film-cell", "data-picture": index },
    box,
    ...bars.map((bar) => bar.element),
  );
  return { element, thumbnail, bars };
}

function drawThumbnail(canvas, run, { image }) {
  const [width, height] = run.pictureSize(image);
  const wide = Math.min(Math.max((HEIGHT * width) / height, NARROWEST), WIDEST);
  const context = fitted(canvas, Math.round(wide), HEIGHT);
  const bitmap = run.images[image];
  if (!bitmap) return;
  const scale = Math.min(Math.round(wide) / width, HEIGHT / height);
  const [w, h] = [width * scale, height * scale];
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, (Math.round(wide) - w) / 2, (HEIGHT - h) / 2, w, h);
}
