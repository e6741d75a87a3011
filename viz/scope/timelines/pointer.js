/** Pointing at the rows: hover previews a step, a press or a drag goes to it, in a raster to a layer too. */

import { GUTTER } from "./axis.js";

const DRAG = 6; // CSS pixels sideways after which a finger means to drag

/**
 * @param {import("./timelines.js").Stage} stage
 * @param {HTMLElement} rows
 * @param {Map<HTMLElement, import("./frame.js").RowSpec>} specs
 * @param {import("./tooltip.js").Tooltip} tooltip
 */
export function listenToPointer(stage, rows, specs, tooltip) {
  const { signal } = stage;
  const hand = new Hand(stage, rows, specs, tooltip);
  rows.addEventListener("pointerdown", (event) => hand.press(event), { signal });
  rows.addEventListener("pointermove", (event) => hand.move(event), { signal });
  rows.addEventListener("pointerup", (event) => hand.release(event), { signal });
  rows.addEventListener("pointercancel", (event) => hand.cancel(event), { signal });
  rows.addEventListener("pointerleave", () => hand.leave(), { signal });
}

class Hand {
  constructor(stage, rows, specs, tooltip) {
    Object.assign(this, { stage, rows, specs, tooltip });
    this.pressed = null; // id of the pointer that is down
    this.touched = null; // what a finger is on, until it is clear that it does not scroll the page
  }

  /** What a pointer is over: the row, its height in it, and x from the end of the gutter. */
  place(event) {
    const element = event.target.closest?.(".timelines-row");
    const x = event.clientX - this.rows.getBoundingClientRect().left - GUTTER;
    const y = element ? event.clientY - element.getBoundingClientRect().top : 0;
    return { row: this.specs.get(element), x, y };
  }

  press(event) {
    const { store, axis } = this.stage;
    if (event.button !== 0 || !store.steps || event.target.closest("a")) return;
    const { row, x, y } = this.place(event);
    const layer = row?.layerAt?.(y) ?? null;
    if (x < 0) {
      if (layer !== null) this.chooseLayer(layer);
      return;
    }
    this.pressed = event.pointerId;
    this.rows.setPointerCapture(event.pointerId);
    if (event.pointerType === "touch") this.touched = { x, layer };
    else this.choose(axis.step(x), layer);
  }

  choose(step, layer) {
    const { store } = this.stage;
    this.touched = null;
    this.leave();
    if (layer !== null) store.set({ layer });
    store.goTo(step);
  }

  /** A layer's number chooses it, and once more: the mean again. */
  chooseLayer(layer) {
    const { store } = this.stage;
    store.set({ layer: store.state.layer === layer ? "mean" : layer });
  }

  move(event) {
    const { store, axis } = this.stage;
    const { row, x, y } = this.place(event);
    if (event.pointerId === this.pressed) {
      if (!this.touched) store.goTo(axis.step(x));
      else if (Math.abs(x - this.touched.x) > DRAG) this.choose(axis.step(x), this.touched.layer);
      return;
    }
    if (event.pointerType === "touch" || this.pressed !== null) return;
    const step = Math.floor(x / axis.column) + axis.from;
    if (x < 0 || !axis.shows(step)) {
      this.leave();
      return;
    }
    store.set({ hoverStep: step });
    this.tooltip.show(row?.describe?.(step, y, store.state) ?? null, event);
  }

  release(event) {
    if (event.pointerId !== this.pressed) return;
    if (this.touched) this.choose(this.stage.axis.step(this.touched.x), this.touched.layer);
    this.pressed = null;
  }

  /** The browser took the pointer away, to scroll the page for instance. */
  cancel(event) {
    if (event.pointerId === this.pressed) this.pressed = this.touched = null;
  }

  leave() {
    this.tooltip.hide();
    this.stage.store.set({ hoverStep: null });
  }
}
