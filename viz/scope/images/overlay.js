/**
 * The values that an image pane shows, from a run and the state: attention or missed mass, and what is kept.
 */

/**
 * One value per visual token at a step, f32 [P], as shares of the step's attention; null while its page is
 * missing.
 * `exact` is false where the mean over layers stands in for a layer whose page has not come.
 * @returns {?{values: Float32Array, exact: boolean}}
 */
export function mapValues(run, pages, step, { map, layer, head }, into) {
  if (!run.steps) return null;
  if (map === "attention" && layer === "mean") return { values: ofMean(run, step, into), exact: true };
  const found =
    layer === "mean"
      ? ofAllLayers(run, pages, step, map, into)
      : ofLayer(pages, step, layer, map, head, into);
  if (found) return { values: found, exact: true };
  return map === "attention" ? { values: ofMean(run, step, into), exact: false } : null;
}

function ofMean(run, step, into) {
  return scaled(run.rows.map_mean.row(step), run.rows.map_mean_scale.at(step), into);
}

function ofLayer(pages, step, layer, map, head, into) {
  const found = pages.map(step, layer, map, head);
  return found && scaled(found.values, found.scale, into);
}

function ofAllLayers(run, pages, step, map, into) {
  into.fill(0);
  let count = 0;
  for (let layer = 0; layer < run.layers; layer += 1) {
    if (!run.meta.managed[layer]) continue;
    const found = pages.map(step, layer, map);
    if (!found) return null;
    for (let patch = 0; patch < into.length; patch += 1)
      into[patch] += (found.values[patch] / 255) * found.scale;
    count += 1;
  }
  for (let patch = 0; patch < into.length; patch += 1) into[patch] /= Math.max(count, 1);
  return into;
}

function scaled(pixels, scale, into) {
  for (let patch = 0; patch < into.length; patch += 1) into[patch] = (pixels[patch] / 255) * scale;
  return into;
}

/**
 * What became of every visual token at a step: the share of the shown (layer, KV head) pairs that keep it,
 * now and
 * at the step before.
 * @returns {{now: Float32Array, before: Float32Array}}
 */
export function keptShares(run, step, { layer, head }, memory) {
  memory.now = keptShare(run, step, layer, head, memory.now, memory.count);
  memory.before = keptShare(run, Math.max(step - 1, 0), layer, head, memory.before, memory.count);
  return memory;
}

function keptShare(run, step, layer, head, into, count) {
  into.fill(0);
  const layers = layer === "mean" ? run.managedLayers : [layer];
  const pairs = layers.length * (head === "mean" ? run.heads : 1);
  for (const one of layers) {
    keptCount(run, step, one, head, count);
    for (let patch = 0; patch < into.length; patch += 1) into[patch] += count[patch] / pairs;
  }
  return into;
}

/** How many KV heads of a layer kept each visual token at a step, u8 [P]; `head` counts that head alone. */
export function keptCount(run, step, layer, head, into = new Uint8Array(run.patches)) {
  into.fill(0);
  const heads = head === "mean" ? run.heads : 1;
  for (let offset = 0; offset < heads; offset += 1) {
    const chosen = run.selection(step, layer, head === "mean" ? offset : head);
    if (!chosen) {
      for (let patch = 0; patch < into.length; patch += 1) into[patch] += 1;
      continue;
    }
    for (const index of chosen) {
      const patch = run.patchOf[index];
      if (patch >= 0) into[patch] += 1;
    }
    for (const patch of run.windowPatches) into[patch] += 1;
  }
  return into;
}

/** Buffers for a run of P visual tokens, so that a step allocates nothing. */
export function memoryFor(patches) {
  const floats = () => new Float32Array(patches);
  return { patches, values: floats(), now: floats(), before: floats(), count: new Uint8Array(patches) };
}
