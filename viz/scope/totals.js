/** A run in two numbers, over all its decisions so far: the same as the core's Trace gives. */

/** @param {import("./run.js").Run} run */
export function totals(run) {
  let [decisions, fired, drift] = [0, 0, 0];
  for (let step = 1; step < run.steps; step += 1) {
    for (const layer of run.deciding(step)) {
      decisions += 1;
      fired += run.rows.fire.at(step, layer);
      drift += run.rows.drift.at(step, layer);
    }
  }
  return {
    decisions,
    refreshRate: decisions ? fired / decisions : 0,
    meanDrift: decisions ? drift / decisions : 0,
  };
}
