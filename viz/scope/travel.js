/** Jumps to what matters: the next refresh, the next difference, another layer or KV head. */

/**
 * The next (direction 1) or previous (-1) step at which the chosen layer (any, for "mean") of A or B
 * refreshed.
 */
export function nextRefresh(store, direction) {
  const { step, layer } = store.state;
  const runs = [store.runs.a, store.runs.b].filter((run) => run?.steps);
  for (let at = step + direction; at >= 0 && at < store.steps; at += direction) {
    if (runs.some((run) => at < run.steps && refreshed(run, at, layer))) return at;
  }
  return null;
}

function refreshed(run, step, layer) {
  if (layer !== "mean") return run.fired(step, layer);
  return run.managedLayers.some((one) => run.fired(step, one));
}

/** One further in mean, 0, 1, ..., count - 1; stays at the ends. */
export function moved(value, count, direction) {
  const at = (value === "mean" ? -1 : value) + direction;
  return at < 0 ? "mean" : Math.min(at, count - 1);
}

export function moveLayer(store, direction) {
  if (store.layers) store.set({ layer: moved(store.state.layer, store.layers, direction) });
}

export function moveHead(store, direction) {
  if (store.heads) store.set({ head: moved(store.state.head, store.heads, direction) });
}

/** Pick a patch of a run, and show the picture that it is of. */
export function pickPatch(store, run, patch) {
  store.set(patch === null ? { patch } : { patch, picture: run.shots.of[patch] });
}

/** One picture of the prompt on or back; stays at the ends. */
export function movePicture(store, direction) {
  const { pictures } = store;
  if (pictures > 1)
    store.set({ picture: Math.min(Math.max(store.state.picture + direction, 0), pictures - 1) });
}

const BRIGHTEST = 12; // patches that a person may want to go through one by one

/**
 * Pick the patch with most attention at this step, of A or else B; the one after it, where such a one is picked.
 */
export function pickBrightest(store) {
  const run = [store.runs.a, store.runs.b].find((one) => one?.steps);
  if (!run) return;
  const values = run.rows.map_mean.row(store.stepOf(run));
  const order = Array.from(values.keys())
    .sort((left, right) => values[right] - values[left])
    .slice(0, BRIGHTEST);
  pickPatch(store, run, order[(order.indexOf(store.state.patch) + 1) % order.length] ?? null);
}
