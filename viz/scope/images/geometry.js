/** Where the picture and its patches lie in a pane: pure arithmetic, used to draw and to pick alike. */

/** @typedef {{x: number, y: number, width: number, height: number}} Rectangle */

/**
 * The rectangle of the whole picture in a pane, in CSS pixels; it may reach outside of the pane when zoomed.
 * @param {[number, number]} pane width and height
 * @param {[number, number]} picture width and height
 * @param {[number, number, number]} zoom magnification, and the centre of the pane on the picture, in [0, 1]
 * @returns {Rectangle}
 */
export function pictureIn(pane, picture, [magnification, centreX, centreY]) {
  const fit = Math.min(pane[0] / picture[0], pane[1] / picture[1]) * magnification;
  const [width, height] = [picture[0] * fit, picture[1] * fit];
  return { x: pane[0] / 2 - centreX * width, y: pane[1] / 2 - centreY * height, width, height };
}

/** Keep the picture in sight: no more is shown beside it than its proportions ask for. */
export function clampedZoom(pane, picture, [magnification, x, y]) {
  const zoom = Math.min(Math.max(magnification, 1), 16);
  const { width, height } = pictureIn(pane, picture, [zoom, 0.5, 0.5]);
  const half = [Math.min(pane[0] / 2 / width, 0.5), Math.min(pane[1] / 2 / height, 0.5)];
  const clamp = (value, margin) => Math.min(Math.max(value, margin), 1 - margin);
  return [zoom, clamp(x, half[0]), clamp(y, half[1])];
}

/** Zoom by a factor so that the point under the pointer stays where it is. */
export function zoomedAt(pane, picture, zoom, factor, x, y) {
  const before = pictureIn(pane, picture, zoom);
  const at = [(x - before.x) / before.width, (y - before.y) / before.height];
  const magnification = Math.min(Math.max(zoom[0] * factor, 1), 16);
  const after = pictureIn(pane, picture, [magnification, 0, 0]);
  const centre = [at[0] - (x - pane[0] / 2) / after.width, at[1] - (y - pane[1] / 2) / after.height];
  return clampedZoom(pane, picture, [magnification, ...centre]);
}

/**
 * Which visual tokens a pane draws: those of one picture, of its tiles where it has some, that have a box.
 * @param {import("./shots.js").Shot} shot
 */
export function shownPatches(run, { patches }) {
  const tiled = patches.some((patch) => run.patchLevel[patch] === 1);
  return patches.filter(
    (patch) => (!tiled || run.patchLevel[patch] === 1) && !Number.isNaN(run.patchBox[4 * patch]),
  );
}

/** The visual token under a point of the pane, or null. */
export function patchAt(run, shown, picture, x, y) {
  const [u, v] = [(x - picture.x) / picture.width, (y - picture.y) / picture.height];
  for (const patch of shown) {
    const [x0, y0, x1, y1] = run.patchBox.subarray(4 * patch, 4 * patch + 4);
    if (u >= x0 && u < x1 && v >= y0 && v < y1) return patch;
  }
  return null;
}
