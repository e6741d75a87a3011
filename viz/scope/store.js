/**
 * The one state of the page, and its one rule: `step` is shared by every view.
 *
 * A view is `{keys, draw}`; it is drawn in the next animation frame after one of its keys changed.
 *
 * @typedef {Object} State
 * @property {?string} a          id of run A
 * @property {?string} b          id of run B
 * @property {number} step        the current step, 0 = the prefill
 * @property {number|"mean"} layer
 * @property {number|"mean"} head a KV head
 * @property {?number} patch      the picked visual token
 * @property {number} picture     which picture of the prompt the image panes show, 0 = the first
 * @property {"attention"|"missed"|"full"} map what the image panes show
 * @property {"run"|"step"} scale colours fixed over the run, or fitted to each step
 * @property {"viridis"|"cividis"} colours of the maps
 * @property {boolean} diff       whether the pane A - B is open
 * @property {number} opacity     of the overlay, 0 to 1
 * @property {[number, number, number]} zoom of the image panes: magnification, and the centre in [0, 1]
 * @property {?[number, number]} range steps [from, to] that the timelines show and Play loops over
 * @property {boolean} follow     stay on the newest step
 * @property {boolean} playing
 * @property {number} speed       steps per second
 * @property {?number} hoverStep  previewed, never pinned
 * @property {?number} hoverPatch
 *
 * @typedef {{keys: string[], draw: function(State, Set<string>): void}} View
 */

import { Comparison } from "./compare.js";

export const INITIAL = Object.freeze({
  a: null,
  b: null,
  step: 0,
  layer: "mean",
  head: "mean",
  patch: null,
  picture: 0,
  map: "attention",
  scale: "run",
  colours: "viridis",
  diff: false,
  opacity: 0.8,
  zoom: Object.freeze([1, 0.5, 0.5]),
  range: null,
  follow: true,
  playing: false,
  speed: 8,
  hoverStep: null,
  hoverPatch: null,
});

export class Store {
  constructor() {
    /** @type {State} */
    this.state = { ...INITIAL };
    /** @type {{a: ?import("./run.js").Run, b: ?import("./run.js").Run}} */
    this.runs = { a: null, b: null };
    /** @type {{a: ?import("./pages.js").LayerPages, b: ?import("./pages.js").LayerPages}} */
    this.pages = { a: null, b: null };
    /** @type {import("./compare.js").Comparison} where the tokens of A and B differ */
    this.compare = new Comparison();
    /** @type {Set<View>} */
    this.views = new Set();
    this.changed = new Set();
    this.frame = 0;
    this.listeners = new Set();
    this.stats = { frames: 0, drawn: -1, lastDraw: 0, draws: [] };
  }

  /** Change some fields; whatever really differs is drawn in the next frame. */
  set(patch) {
    for (const [key, value] of Object.entries(patch)) {
      if (!(key in INITIAL)) throw new Error(`the page has no state ${key}`);
      if (same(this.state[key], value)) continue;
      this.state[key] = value;
      this.changed.add(key);
    }
    this.schedule();
  }

  /**
   * Tell the views of something outside the state: runA, runB, compare, fidelity, pages, size, theme, connection or
   * notice.
   */
  signal(...names) {
    for (const name of names) this.changed.add(name);
    this.schedule();
  }

  /** @param {View} view */
  add(view) {
    this.views.add(view);
    for (const key of view.keys) this.changed.add(key);
    this.schedule();
    return () => this.views.delete(view);
  }

  /** Called after every frame with what had changed, until the answer is called. */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  schedule() {
    if (this.changed.size && !this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const changed = this.changed;
    this.changed = new Set();
    const began = performance.now();
    for (const view of this.views) {
      if (!view.keys.some((key) => changed.has(key))) continue;
      try {
        view.draw(this.state, changed);
      } catch (error) {
        reportError(error); // one view that cannot be drawn must not take the others with it
      }
    }
    this.stats.frames += 1;
    this.stats.drawn = this.state.step;
    this.stats.lastDraw = performance.now() - began;
    this.stats.draws.push(this.stats.lastDraw);
    if (this.stats.draws.length > 1000) this.stats.draws.splice(0, 500);
    for (const listener of this.listeners) listener(this.state, changed);
  }

  /** The number of steps that can be shown: those of the longer run. */
  get steps() {
    return Math.max(this.runs.a?.steps ?? 0, this.runs.b?.steps ?? 0);
  }

  /** How many layers can be chosen: both runs show the same one. */
  get layers() {
    return this.common("layers");
  }

  get heads() {
    return this.common("heads");
  }

  /** How many pictures can be chosen: those of the run that has more. */
  get pictures() {
    return Math.max(this.runs.a?.shots?.count ?? 0, this.runs.b?.shots?.count ?? 0);
  }

  common(name) {
    const counts = Object.values(this.runs).flatMap((run) => (run?.meta ? [run[name]] : []));
    return counts.length ? Math.min(...counts) : 0;
  }

  /** The step that a run shows: the current one, or its last where it has ended before. */
  stepOf(run) {
    return Math.min(this.state.step, run.steps - 1);
  }

  /** Go to a step by a person's act: it is clamped, and ends Follow. */
  goTo(step) {
    const last = Math.max(this.steps - 1, 0);
    this.show(Math.min(Math.max(Math.round(step), 0), last));
    this.set({ follow: false });
  }

  /** Change the step; the shown range moves along where the step would leave it. */
  show(step) {
    const { range } = this.state;
    if (!range || (step >= range[0] && step <= range[1])) return this.set({ step });
    const move = step < range[0] ? step - range[0] : step - range[1];
    return this.set({ step, range: [range[0] + move, range[1] + move] });
  }
}

function same(left, right) {
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => item === right[index]);
  }
  return left === right;
}
