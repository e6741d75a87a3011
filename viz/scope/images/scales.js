/** What the colours of the panes stand for: one scale for A and B, so that they can be compared. */

/**
 * @type {WeakMap<import("../run.js").Run, Map<string, {steps: number, value: number}>>} what was worked out
 * before
 */
const known = new WeakMap();

/**
 * The end of the colour scale over a run: of the largest values of its steps, that which one in twenty
 * exceeds,
 * so that a single step with one bright patch does not darken all others.
 */
function scaleEnd(run, { map, layer, head }) {
  const ends = known.get(run) ?? new Map();
  known.set(run, ends);
  const key = `${map} ${layer} ${head}`;
  if (ends.get(key)?.steps === run.steps) return ends.get(key).value;
  const values = Float32Array.from({ length: run.steps }, (_, step) =>
    run.scaleAt(map, layer, head, step),
  ).sort();
  const value = values[Math.min(Math.floor(0.95 * run.steps), run.steps - 1)] ?? 0;
  ends.set(key, { steps: run.steps, value });
  return value;
}

export class Scales {
  constructor(store) {
    this.store = store;
  }

  /** The value at the end of the scale, for a pane whose present values are given. */
  maximum(pane, values) {
    const { state, runs } = this.store;
    if (state.scale === "step") {
      let largest = 0;
      if (values) for (const value of values) if (value > largest) largest = value;
      pane.maximum = largest;
    } else {
      const ends = [runs.a, runs.b].map((run) => (run?.steps ? scaleEnd(run, state) : 0));
      pane.maximum = Math.max(...ends);
    }
    return pane.maximum;
  }
}
