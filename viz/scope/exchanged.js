/** Entries exchanged from one step to the next: those of a KV head's selection that were not in it before. */

/** Which entries the last count marked, by prefix index. */
const seen = { marks: new Int32Array(0), stamp: 0 };

/**
 * In one KV head of a layer; 0 at the prefill, and where everything is kept.
 * @param {import("./run.js").Run} run
 */
export function exchangedByHead(run, step, layer, head) {
  const rows = exchangedRows(run, step, layer);
  return rows ? freshIn(run, ...rows, head) : 0;
}

/** In all KV heads of a layer together. */
export function exchangedIn(run, step, layer) {
  const rows = exchangedRows(run, step, layer);
  let fresh = 0;
  for (let head = 0; rows && head < run.heads; head += 1) fresh += freshIn(run, ...rows, head);
  return fresh;
}

/** The selections before and at a step, as rows of the run; null where nothing can have changed. */
function exchangedRows(run, step, layer) {
  if (step < 1) return null;
  const [before, now] = [run.rows.selected_row.at(step - 1, layer), run.rows.selected_row.at(step, layer)];
  if (before === now || before < 0 || now < 0) return null;
  if (seen.marks.length < run.meta.prefix_length) seen.marks = new Int32Array(run.meta.prefix_length);
  return [before, now];
}

function freshIn({ meta: { select }, selections: { buffer, width } }, before, now, head) {
  const { marks } = seen;
  const stamp = (seen.stamp += 1); // a mark of an earlier call is a number of its own: nothing needs clearing
  const [old, present] = [before * width + head * select, now * width + head * select];
  let fresh = 0;
  for (let slot = 0; slot < select; slot += 1) marks[buffer[old + slot]] = stamp;
  for (let slot = 0; slot < select; slot += 1) if (marks[buffer[present + slot]] !== stamp) fresh += 1;
  return fresh;
}
