/** The figures of one run, and its tables. */

import { Figure } from "./figure.js";
import { isLive } from "../run.js";
import { make } from "../dom.js";
import { title } from "./columns.js";

const REDRAW = 2000; // ms at least between two drawings of a live run
const NEAR = "300px"; // from sight: then the figures are drawn
const TABLES = {
  steps: "a row per step: token, refresh share, drift, tau, attention by kind",
  layers: "a row per layer-step: drift, tau, whether it refreshed, entries exchanged per KV head",
  selections: "a row per selection with entries exchanged: which came and went",
};

/** @type {import("./figure.js").Kind[]} */
const KINDS = [
  {
    name: "tau",
    head: "tau",
    about: "the threshold, as each decision used it",
    names: ["step", "value"],
    term: "tau",
  },
  {
    name: "drift",
    head: "Drift",
    about: "the attention that a selection misses, as estimated at each decision",
    names: ["step", "layer", "drift"],
    term: "drift",
  },
  {
    name: "rate",
    head: "Refresh rate",
    about: "how many layer-steps selected anew, and the target",
    names: ["step", "rate"],
    term: "refresh rate",
  },
  {
    name: "mass",
    head: "Attention",
    about: "where it rests, by kind of entry",
    names: ["step", "share"],
    term: "attention mass by kind",
  },
];

/**
 * @param {HTMLElement} element
 * @param {import("./desk.js").Desk} desk
 */
export function mountFigures(element, desk, signal) {
  const figures = KINDS.map((kind) => new Figure(kind, desk));
  const grid = make("div", { class: "runs-grid" }, ...figures.map((figure) => figure.element));
  const empty = make("p", { class: "scope-hint" }, "Choose a run as A, or press Figures in its row.");
  const tables = tableButtons(desk);
  element.append(chooser(element, desk), empty, grid, tables);
  const drawing = new Drawing(figures, desk);
  desk.add(() => {
    const none = !desk.list.get(desk.drawn());
    empty.hidden = !none;
    grid.hidden = none;
    tables.hidden = none;
    drawing.update();
  });
  const seen = (entries) => drawing.show(entries.at(-1).isIntersecting);
  const near = new IntersectionObserver(seen, { rootMargin: NEAR });
  near.observe(element);
  const theme = new MutationObserver(() => figures.forEach((figure) => figure.theme()));
  theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  signal.addEventListener("abort", () => {
    near.disconnect();
    theme.disconnect();
    drawing.show(false);
    figures.forEach((figure) => figure.clear(""));
  });
}

/** Draws the chosen run while the figures are in sight: one figure after the other, the newest wish first. */
class Drawing {
  constructor(figures, desk) {
    this.figures = figures;
    this.desk = desk;
    this.near = false;
    this.id = null;
    this.abort = null;
    this.last = 0;
    this.timer = 0;
  }

  show(near) {
    this.near = near;
    clearTimeout(this.timer);
    this.update();
  }

  update() {
    const run = this.desk.list.get(this.desk.drawn());
    if (run?.id !== this.id) {
      this.abort?.abort();
      this.abort = null;
      this.id = run?.id ?? null;
      this.last = 0;
      this.figures.forEach((figure) => figure.clear("drawing"));
    }
    if (!run || !this.near || this.abort) return;
    if (!run.steps) {
      const why = isLive(run) ? "waiting for the first step" : "this run has no steps";
      this.figures.forEach((figure) => figure.clear(why));
      return;
    }
    if (this.figures.every((figure) => figure.run?.id === run.id && figure.steps === run.steps)) return;
    const wait = this.last + REDRAW - performance.now();
    clearTimeout(this.timer);
    if (wait > 0) this.timer = setTimeout(() => this.update(), wait);
    else this.draw(run);
  }

  async draw(run) {
    const abort = new AbortController();
    this.abort = abort;
    for (const figure of this.figures) {
      if (this.near && !abort.signal.aborted) await figure.draw(run, abort.signal);
    }
    if (abort.signal.aborted) return;
    this.abort = null;
    this.last = performance.now();
  }
}

/** Whose figures: those of A, of B, or of the run whose row asked for them. */
function chooser(element, desk) {
  const select = make("select", { "aria-label": "run whose figures are drawn" });
  select.addEventListener("change", () => desk.draw(select.value));
  let before = desk.figures;
  desk.add(() => {
    const options = optionsOf(desk);
    const known = JSON.stringify([...select.options].map((option) => [option.value, option.textContent]));
    if (known !== JSON.stringify(options)) {
      select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
    }
    select.value = desk.figures;
    const elsewhere = desk.figures !== before && document.activeElement !== select;
    if (elsewhere) {
      element.scrollIntoView({ block: "start" });
      select.focus({ preventScroll: true });
    }
    before = desk.figures;
  });
  return make("h2", { class: "runs-head" }, "Figures of ", select);
}

function optionsOf({ choice, list, figures }) {
  const said = (id) => (list.get(id) ? title(list.get(id)) : "none chosen");
  const options = ["a", "b"].map((which) => [which, `${which.toUpperCase()}: ${said(choice[which])}`]);
  return figures in choice ? options : [...options, [figures, said(figures)]];
}

function tableButtons(desk) {
  const button = ([name, about]) => {
    const onclick = () => desk.table(desk.drawn(), name);
    return make("button", { type: "button", class: "runs-action", title: about, onclick }, `${name}.csv`);
  };
  return make("p", { class: "runs-tables" }, "Tables: ", ...Object.entries(TABLES).map(button));
}
