/** One image pane (run A, run B, or A - B): draws what the state says, and lets a person pick a patch. */

import { fitted } from "../canvas.js";
import { badge, make } from "../dom.js";
import { themeColours } from "../palette.js";
import { spokenObject } from "../truth.js";
import { clampedZoom, patchAt, pictureIn, shownPatches, zoomedAt } from "./geometry.js";
import { noteText, patchText, titleText } from "./notes.js";
import { keptShares, mapValues, memoryFor } from "./overlay.js";
import { paint, rectangles } from "./painting.js";
import { PromptStrip } from "./prompt.js";

const TALLEST = 1; // height over width of a pane that shows one of several pictures

export class Pane {
  /**
   * @param {"a"|"b"} which
   * @param {import("./scales.js").Scales} scales shared by all panes
   * @param {{step: ?number}} preview a step that is shown for the moment instead of the current one
   */
  constructor(parent, store, which, scales, preview) {
    Object.assign(this, { store, which, scales, preview, run: null, shot: null });
    Object.assign(this, { shown: [], memory: null, sums: null, drag: null });
    this.title = make("div", { class: "scope-pane-title" });
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.tip = make("div", { class: "scope-tip", hidden: true });
    const label = `picture of run ${which.toUpperCase()} with its patches`;
    this.box = make(
      "div",
      { class: "scope-pane-box", tabindex: -1, role: "img", "aria-label": label },
      this.canvas,
      this.tip,
    );
    this.note = make("div", { class: "scope-pane-note" });
    this.prompt = new PromptStrip(store, which);
    this.element = make(
      "figure",
      { class: `scope-pane scope-pane-${which}` },
      this.title,
      this.box,
      this.note,
      this.prompt.element,
    );
    parent.append(this.element);
    this.listen();
  }

  listen() {
    const { box, store } = this;
    box.addEventListener("pointermove", (event) => this.move(event));
    box.addEventListener("pointerdown", (event) => this.press(event));
    box.addEventListener("pointerup", (event) => this.release(event));
    for (const ending of ["pointercancel", "lostpointercapture"])
      box.addEventListener(ending, () => (this.drag = null));
    box.addEventListener("pointerleave", () => store.set({ hoverPatch: null }));
    box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    box.addEventListener("dblclick", () => store.set({ zoom: [1, 0.5, 0.5] }));
  }

  get pictureSize() {
    return this.shot ? this.run.pictureSize(this.shot.image) : [1, 1];
  }

  get size() {
    return [this.box.clientWidth, this.box.clientHeight];
  }

  /** The step that is shown: the previewed or the current one, or the run's last where it has fewer. */
  get step() {
    return Math.min(this.preview.step ?? this.store.state.step, this.run.steps - 1);
  }

  get picture() {
    return pictureIn(this.size, this.pictureSize, this.store.state.zoom);
  }

  patchUnder(event) {
    if (!this.run?.patches) return null;
    const box = this.box.getBoundingClientRect();
    return patchAt(this.run, this.shown, this.picture, event.clientX - box.left, event.clientY - box.top);
  }

  move(event) {
    const { drag, store } = this;
    if (drag) {
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag.moved = true;
      const { width, height } = this.picture;
      const [magnification, x, y] = drag.zoom;
      store.set({
        zoom: clampedZoom(this.size, this.pictureSize, [magnification, x - dx / width, y - dy / height]),
      });
      return;
    }
    store.set({ hoverPatch: this.patchUnder(event) });
    this.placeTip(event);
  }

  press(event) {
    if (event.button !== 0) return;
    this.drag = { x: event.clientX, y: event.clientY, zoom: this.store.state.zoom, moved: false };
    this.box.setPointerCapture(event.pointerId);
  }

  release(event) {
    const { drag, store } = this;
    this.drag = null;
    if (!drag || drag.moved) return;
    const patch = this.patchUnder(event);
    store.set({ patch: patch === store.state.patch ? null : patch, follow: false });
  }

  /** Plain wheel turns scroll the page; with Ctrl, Command or a pinch they zoom, as on maps. */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = this.box.getBoundingClientRect();
    this.zoomBy(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }

  zoomBy(factor, x = this.size[0] / 2, y = this.size[1] / 2) {
    this.store.set({ zoom: zoomedAt(this.size, this.pictureSize, this.store.state.zoom, factor, x, y) });
  }

  /** Take up the run and the chosen picture of it, if they are others than before. */
  takeRun() {
    const run = this.store.runs[this.which];
    const shot = run?.shots?.at(this.store.state.picture) ?? null;
    if (run !== this.run || this.memory?.patches !== run?.patches) {
      this.memory = run?.meta ? memoryFor(run.patches) : null;
      this.shot = undefined;
    }
    this.run = run;
    if (shot === this.shot) return;
    this.shot = shot;
    this.shown = shot ? shownPatches(run, shot) : [];
    this.box.style.aspectRatio = `1 / ${this.heightOverWidth}`;
  }

  /** Of the pane. With several pictures it is the same for each, so that what is below stays in place. */
  get heightOverWidth() {
    const { run } = this;
    const ratio = ([width, height]) => Math.max(height / width, 0.5);
    if (!run?.shots?.several) return ratio(this.pictureSize);
    return Math.min(Math.max(...run.shots.list.map(({ image }) => ratio(run.pictureSize(image)))), TALLEST);
  }

  draw() {
    this.takeRun();
    this.box.classList.toggle("scope-zoomed", this.store.state.zoom[0] > 1);
    const context = fitted(this.canvas, ...this.size);
    const { run, store } = this;
    this.title.replaceChildren(badge(this.which), titleText(this));
    if (!run?.steps) {
      this.note.textContent = "";
      this.prompt.element.hidden = true;
      if (this.shot) paint(context, this.bare(), {});
      return;
    }
    const { state } = store;
    const { step } = this;
    const found = mapValues(run, store.pages[this.which], step, state, this.memory.values);
    const kept = this.evicts(step) ? keptShares(run, step, state, this.memory) : null;
    this.found = found;
    this.sums = found && run.shots.several ? run.shots.sums(found.values) : null;
    const scene = {
      ...this.bare(),
      values: found?.values ?? null,
      maximum: this.scales.maximum(this, found?.values),
      kept,
    };
    paint(context, { ...scene, box: spokenObject(run, step)?.box ?? null }, themeColours(this.box));
    this.note.textContent = noteText(this, found);
    this.prompt.draw(run, step, kept !== null);
    this.showTip();
  }

  /** The rectangles of the patches; they change with the size and the zoom alone. */
  boxes(picture) {
    const key = [this.run.id, window.devicePixelRatio, ...Object.values(picture)].join();
    if (key !== this.boxesKey) this.boxesKept = rectangles(this.run, picture);
    this.boxesKey = key;
    return this.boxesKept;
  }

  /** The picture alone, as a scene. */
  bare() {
    const { run, shown, picture } = this;
    const { opacity, colours } = this.store.state;
    const [patch, hoverPatch] = ["patch", "hoverPatch"].map((name) => this.here(this.store.state[name]));
    const boxes = this.boxes(picture);
    const scene = {
      image: this.shot && run.images[this.shot.image],
      shown,
      picture,
      boxes,
      values: null,
      maximum: 0,
      diverging: false,
      opacity,
      kept: null,
      box: null,
    };
    return { ...scene, colours, patch, hoverPatch };
  }

  /** A patch, where it is of the picture that is shown; else null. */
  here(patch) {
    const { shots } = this.run;
    return patch !== null && shots.list[shots.of[patch]] === this.shot ? patch : null;
  }

  evicts(step) {
    const { layer } = this.store.state;
    const layers = layer === "mean" ? this.run.managedLayers : [layer];
    return layers.some((one) => this.run.rows.selected_row.at(step, one) >= 0);
  }

  placeTip(event) {
    const box = this.box.getBoundingClientRect();
    this.tip.style.left = `${Math.min(event.clientX - box.left + 14, box.width - 150)}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  /** Value and state of the patch under the pointer. */
  showTip() {
    const { hoverPatch } = this.store.state;
    this.tip.hidden = hoverPatch === null || !this.box.matches(":hover") || Boolean(this.drag?.moved);
    if (this.tip.hidden) return;
    this.tip.textContent = patchText(this, hoverPatch);
  }
}
