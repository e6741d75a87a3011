/**
 * Paints one pane: the picture, values as colours on the exact patch rectangles, and the states of the
 * patches.
 */

import { colour } from "../palette.js";

export const KEPT = 1e-6;
// of outlines: kept by few, by some, by most of the shown layers and KV heads
const STRENGTHS = [0.18, 0.55, 1];
const SIGN_ROOM = 12; // CSS pixels

/**
 * @typedef {Object} Scene everything that a pane shows at one moment
 * @property {?ImageBitmap} image
 * @property {number[]} shown          the visual tokens that are drawn
 * @property {import("./geometry.js").Rectangle} picture
 * @property {Float32Array} boxes      rectangles of the patches, [P, 4]
 * @property {?Float32Array} values    [P]
 * @property {number} maximum          what the end of the colour scale stands for
 * @property {boolean} diverging       values around 0 instead of from 0
 * @property {"viridis"|"cividis"} colours of values from 0
 * @property {number} opacity
 * @property {?{now: Float32Array, before: Float32Array}} kept  null where everything is kept
 * @property {?number} patch
 * @property {?number} hoverPatch
 * @property {?number[]} box           of the object that the words speak of, in [0, 1]
 */

/** @param {CanvasRenderingContext2D} context @param {Scene} scene @param {object} theme */
export function paint(context, scene, theme) {
  const { picture, image } = scene;
  if (image) {
    context.imageSmoothingEnabled = picture.width < 2 * image.width;
    context.drawImage(image, picture.x, picture.y, picture.width, picture.height);
  }
  if (scene.values) paintValues(context, scene);
  if (scene.kept) paintStates(context, scene);
  for (const [patch, width] of [
    [scene.hoverPatch, 1.5],
    [scene.patch, 3],
  ]) {
    if (patch !== null) ring(context, scene.boxes.subarray(4 * patch, 4 * patch + 4), width, theme.accent);
  }
  if (scene.box) paintBox(context, scene);
}

/**
 * The rectangles of all patches in CSS pixels, f32 [P, 4]: x, y, width, height. Edges lie on whole device
 * pixels, so
 * that neighbours meet without a seam.
 */
export function rectangles(run, picture) {
  const ratio = window.devicePixelRatio || 1;
  const box = run.patchBox;
  const found = new Float32Array(box.length);
  const snap = (value) => Math.round(value * ratio) / ratio;
  for (let at = 0; at < box.length; at += 4) {
    found[at] = snap(picture.x + box[at] * picture.width);
    found[at + 1] = snap(picture.y + box[at + 1] * picture.height);
    found[at + 2] = snap(picture.x + box[at + 2] * picture.width) - found[at];
    found[at + 3] = snap(picture.y + box[at + 3] * picture.height) - found[at + 1];
  }
  return found;
}

function paintValues(context, scene) {
  const { values, maximum, diverging, opacity, boxes } = scene;
  const map = diverging ? "diverging" : scene.colours;
  for (const patch of scene.shown) {
    const share = maximum > 0 ? values[patch] / maximum : 0;
    if (!share) continue;
    context.globalAlpha = opacity * coverage(Math.abs(share));
    context.fillStyle = colour(diverging ? 0.5 + share / 2 : share, map);
    context.fillRect(boxes[4 * patch], boxes[4 * patch + 1], boxes[4 * patch + 2], boxes[4 * patch + 3]);
  }
  context.globalAlpha = 1;
}

/**
 * How much of the picture a value hides: little values leave it in sight. The legend's ramp is drawn
 * likewise.
 */
export function coverage(share) {
  return Math.sqrt(Math.min(share, 1));
}

/**
 * Kept: outlined. Just in: outlined, with a plus. Just out: dashed, with a minus. Evicted: hatched. The fewer
 * of the
 * shown (layer, KV head) pairs keep a patch, the fainter its outline. Patches of one look are stroked
 * together.
 */
function paintStates(context, scene) {
  const { now, before } = scene.kept;
  const evicted = new Path2D();
  const looks = new Map();
  for (const patch of scene.shown) {
    const box = scene.boxes.subarray(4 * patch, 4 * patch + 4);
    const [is, was] = [now[patch] > KEPT, before[patch] > KEPT];
    if (!is) hatch(evicted, box);
    if (!is && !was) continue;
    const state = is ? (was ? "kept" : "in") : "out";
    const strength = strengthOf(is ? now[patch] : before[patch]);
    const key = `${state} ${strength}`;
    if (!looks.has(key)) looks.set(key, { state, strength, path: new Path2D() });
    outline(looks.get(key).path, box, state);
  }
  strokeTwice(context, evicted, ["rgba(0, 0, 0, 0.2)", 1.6], ["rgba(255, 255, 255, 0.35)", 0.8]);
  for (const { state, strength, path } of looks.values()) {
    context.globalAlpha = STRENGTHS[strength];
    context.setLineDash(state === "out" ? [3, 2] : []);
    strokeTwice(context, path, ["rgba(0, 0, 0, 0.65)", 2.6], ["#ffffff", 1.2]);
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/** Which of the strengths stands for the share of (layer, KV head) pairs that keep an entry, above 0. */
export function strengthOf(share) {
  return Math.ceil(STRENGTHS.length * Math.min(2 * share, 1) - KEPT) - 1; // not one more for a last digit
}

function strokeTwice(context, path, ...strokes) {
  for (const [style, lineWidth] of strokes) {
    context.strokeStyle = style;
    context.lineWidth = lineWidth;
    context.stroke(path);
  }
}

function hatch(path, [x, y, width, height]) {
  path.moveTo(x, y + height);
  path.lineTo(x + width, y);
}

/** The outline of a patch, and where there is room a plus for what came in, a minus for what went out. */
function outline(path, [x, y, width, height], state) {
  path.rect(x + 1, y + 1, width - 2, height - 2);
  if (state === "kept" || width < SIGN_ROOM) return;
  const [centreX, centreY, arm] = [x + width / 2, y + height / 2, Math.min(width, height) / 4];
  path.moveTo(centreX - arm, centreY);
  path.lineTo(centreX + arm, centreY);
  if (state === "out") return;
  path.moveTo(centreX, centreY - arm);
  path.lineTo(centreX, centreY + arm);
}

function ring(context, [x, y, width, height], lineWidth, style) {
  for (const [colourOf, extra] of [
    ["#ffffff", 2],
    [style, 0],
  ]) {
    context.strokeStyle = colourOf;
    context.lineWidth = lineWidth + extra;
    context.strokeRect(x - 1, y - 1, width + 2, height + 2);
  }
}

/** The object of the current words, as a box that stands out on any picture. */
function paintBox(context, { picture, box }) {
  const [x0, y0, x1, y1] = box;
  const [x, y] = [picture.x + x0 * picture.width - 3, picture.y + y0 * picture.height - 3];
  const [width, height] = [(x1 - x0) * picture.width + 6, (y1 - y0) * picture.height + 6];
  for (const [style, lineWidth, dash] of [
    ["#000000", 4.5, []],
    ["#ffd60a", 2.5, [7, 4]],
  ]) {
    context.strokeStyle = style;
    context.lineWidth = lineWidth;
    context.setLineDash(dash);
    context.strokeRect(x, y, width, height);
  }
  context.setLineDash([]);
}
