/** The pane A - B: where A has more of what the map shows (orange) and where B has (blue). */

import { fitted } from "../canvas.js";
import { make } from "../dom.js";
import { themeColours } from "../palette.js";
import { short } from "../words.js";
import { pictureIn } from "./geometry.js";
import { mapValues } from "./overlay.js";
import { paint, rectangles } from "./painting.js";

const VERBS = { attention: "looks", missed: "misses", full: "would look" };

export class DifferencePane {
  /** @param {import("./pane.js").Pane} a @param {import("./pane.js").Pane} b */
  constructor(parent, store, a, b) {
    Object.assign(this, { store, a, b, values: null, other: null, maximum: 0 });
    this.title = make("div", { class: "scope-pane-title" }, "A − B");
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.box = make("div", { class: "scope-pane-box" }, this.canvas);
    this.note = make("div", { class: "scope-pane-note" });
    this.element = make(
      "figure",
      { class: "scope-pane scope-pane-difference" },
      this.title,
      this.box,
      this.note,
    );
    parent.append(this.element);
  }

  draw() {
    const { store, a, b, element, box } = this;
    element.hidden = !store.state.diff;
    if (element.hidden) return;
    box.style.aspectRatio = a.box.style.aspectRatio;
    const size = [box.clientWidth, box.clientHeight];
    const context = fitted(this.canvas, ...size);
    const reason = this.obstacle();
    this.note.textContent = reason;
    if (reason) return;
    this.subtract();
    const picture = pictureIn(size, a.pictureSize, store.state.zoom);
    const scene = { ...a.bare(), picture, boxes: rectangles(a.run, picture), values: this.values };
    paint(context, { ...scene, maximum: this.maximum, diverging: true }, themeColours(box));
    this.note.textContent = `orange: A ${VERBS[store.state.map]} more, blue: B does; the ends stand for ±${short(this.maximum)}`;
  }

  /** Why there is no difference to show, or "". */
  obstacle() {
    const { a, b, store } = this;
    if (!a.run?.steps || !b.run?.steps) return "needs two runs";
    if (a.run.patches !== b.run.patches) return "the two runs are of pictures with different patches";
    const found = [a, b].map((pane) => this.valuesOf(pane, store));
    if (found.every((one) => one?.exact)) return "";
    const recorded = [a, b].every((pane) => pane.run.records(store.state.map));
    return recorded ? "the maps are on their way" : "not both runs have such a map";
  }

  valuesOf(pane, store) {
    const size = pane.run.patches;
    const key = pane === this.a ? "values" : "other";
    if (this[key]?.length !== size) this[key] = new Float32Array(size);
    return mapValues(pane.run, store.pages[pane.which], pane.step, store.state, this[key]);
  }

  subtract() {
    this.maximum = this.store.state.scale === "run" ? Math.max(this.a.maximum, this.b.maximum) : 0;
    for (let patch = 0; patch < this.values.length; patch += 1) {
      this.values[patch] -= this.other[patch];
      if (this.store.state.scale === "step")
        this.maximum = Math.max(this.maximum, Math.abs(this.values[patch]));
    }
  }
}
