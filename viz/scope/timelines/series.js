/** Numbers per step that are worked out once per run, and further when it has grown. */

import { Rows } from "../rows.js";
import { exchangedIn } from "../exchanged.js";

export class Series {
  /** @param {function(Run, number, number|"mean", Rows): number} value of a step; earlier ones in the rows */
  constructor(value) {
    this.value = value;
    /** @type {WeakMap<Run, Map<number|"mean", Rows>>} */
    this.known = new WeakMap();
  }

  /**
   * @param {import("../run.js").Run} run
   * @param {number|"mean"} layer
   * @returns {Float32Array} at least as long as the run
   */
  of(run, layer = "mean") {
    const rows = this.rows(run, layer);
    while (rows.count < run.steps) rows.push([this.value(run, rows.count, layer, rows)]);
    return rows.buffer;
  }

  rows(run, layer) {
    const byLayer = this.known.get(run) ?? new Map();
    this.known.set(run, byLayer);
    if (!byLayer.has(layer)) byLayer.set(layer, new Rows(Float32Array, 1));
    return byLayer.get(layer);
  }
}

/** How many decisions a test holds for, from the start of the run up to a step. */
function running(test) {
  return new Series((run, step, _, before) => {
    const count = run.deciding(step).filter((layer) => test(run, step, layer)).length;
    return count + (step ? before.at(step - 1) : 0);
  });
}

/** Of a layer, or the mean over the layers that decide; NaN where none does. */
export const drift = new Series((run, step, layer) => run.meanOfDecisions("drift", step, layer));
export const tau = new Series((run, step, layer) => run.meanOfDecisions("tau", step, layer));
export const refreshShare = new Series((run, step) => run.refreshShare(step));
export const decisions = running(() => true);
export const refreshes = running((run, step, layer) => run.fired(step, layer));

/** The refresh rate of a run up to a step; NaN before the first decision. */
export const rate = new Series((run, step) => refreshes.of(run)[step] / decisions.of(run)[step]);

/** Entries exchanged from the step before, all KV heads of a layer, or of all managed layers, together. */
export const exchanged = new Series((run, step, chosen) =>
  run.chosenLayers(chosen).reduce((sum, layer) => sum + exchangedIn(run, step, layer), 0),
);
