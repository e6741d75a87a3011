/** Layers against steps: where a run refreshed, how far the other layers had drifted. */

import { short, tokenText } from "../words.js";
import { decisions } from "./series.js";
import { Texture } from "./texture.js";

const TALL = 190; // CSS pixels that a raster aims at
const PADDING = 2; // room for the ring of the first and of the last layer
const EMPTY = 84;

/**
 * @param {import("./timelines.js").Stage} stage
 * @param {"a"|"b"} which
 * @returns {import("./frame.js").RowSpec}
 */
export function rasterRow(stage, which) {
  const { store } = stage;
  const texture = new Texture();
  const layersOf = () => store.runs[which]?.layers ?? 0;
  const rowHeight = () => Math.min(Math.max(Math.round(TALL / layersOf()), 6), 14);
  const layerAt = (y) => {
    const layer = Math.floor((y - PADDING) / rowHeight());
    return layersOf() ? Math.min(Math.max(layer, 0), layersOf() - 1) : null;
  };
  return {
    id: "raster",
    name: "refreshes",
    term: "refresh",
    run: which,
    keys: ["layer"],
    layerAt: (y) => (layerAt(y) < store.layers ? layerAt(y) : null),
    height() {
      if (layersOf()) return layersOf() * rowHeight() + 2 * PADDING;
      return which === "a" ? EMPTY : 0;
    },
    draw(context, state, height) {
      const run = store.runs[which];
      if (!run?.steps) return drawFrame(context, stage, height);
      texture.update(run, stage.look);
      context.translate(0, PADDING);
      drawCells(context, stage, run, texture, rowHeight());
      drawLayers(context, stage, run, state.layer, rowHeight());
      if (run.steps > 1 && !decisions.of(run)[run.steps - 1]) sayNothingDecided(context, stage, height);
    },
    describe: (step, y) => describe(store.runs[which], step, layerAt(y)),
  };
}

function drawFrame(context, { axis, look }, height) {
  context.strokeStyle = look.line;
  context.strokeRect(0.5, PADDING + 0.5, axis.width - 1, height - 2 * PADDING - 1);
}

function drawCells(context, { axis, look }, run, texture, rowHeight) {
  const span = axis.span(run);
  const [first, last] = span;
  if (last < first) return;
  const [width, height] = [(last - first + 1) * axis.column, run.layers * rowHeight];
  context.fillStyle = look.hatch;
  context.fillRect(0, 0, width, height);
  texture.draw(context, span, width, height);
  context.fillStyle = look.ground; // the gaps between cells
  for (let layer = 1; layer < run.layers; layer += 1) context.fillRect(0, layer * rowHeight - 1, width, 1);
  const ratio = window.devicePixelRatio || 1; // a cell begins at a whole pixel of the display
  for (let step = first + 1; step <= last && axis.column >= 6; step += 1) {
    context.fillRect(Math.round(axis.x(step) * ratio) / ratio - 1, 0, 1, height);
  }
}

function sayNothingDecided(context, { axis, look }, height) {
  const text = "keeps the whole prefix: no decisions";
  const [x, y] = [axis.width / 2, height / 2 - PADDING];
  context.font = look.font(11);
  context.textAlign = "center";
  context.textBaseline = "middle";
  const half = context.measureText(text).width / 2 + 6;
  context.fillStyle = look.ground;
  context.fillRect(x - half, y - 9, 2 * half, 18);
  context.fillStyle = look.faint;
  context.fillText(text, x, y);
}

/** Numbers of layers in the gutter, and a ring around the row of the chosen one. */
function drawLayers(context, { axis, look }, run, chosen, rowHeight) {
  const every = rowHeight >= 10 ? 1 : 4;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.font = look.font(10);
  context.fillStyle = look.faint;
  for (let layer = 0; layer < run.layers; layer += every) {
    if (chosen !== "mean" && every > 1 && Math.abs(layer - chosen) * rowHeight < 11) continue;
    context.fillText(String(layer), -6, (layer + 0.5) * rowHeight);
  }
  if (chosen === "mean" || chosen >= run.layers) return;
  context.font = look.font(10, "bold");
  context.fillStyle = look.accent;
  context.fillText(String(chosen), -6, (chosen + 0.5) * rowHeight);
  context.strokeStyle = look.accent;
  context.lineWidth = 1.5;
  const width = (axis.to - axis.from + 1) * axis.column;
  context.strokeRect(-0.75, chosen * rowHeight - 1.25, width + 1.5, rowHeight + 1.5);
}

function describe(run, step, layer) {
  if (!run || step >= run.steps || layer === null) return null;
  const place = `step ${step} ‘${tokenText(run, step)}’ · layer ${layer}`;
  if (step === 0) return `${place} · prefill, no decision`;
  if (!run.decided(step, layer)) return `${place} · keeps its whole prefix, no decision`;
  const [drift, tau] = [run.rows.drift.at(step, layer), run.rows.tau.at(step, layer)];
  const against = tau > 0 ? ` ${drift > tau ? ">" : "≤"} tau ${short(tau)}` : "";
  const done = run.fired(step, layer) ? "refreshed" : "not refreshed";
  return `${place} · ${done} · drift ${short(drift)}${against}`;
}
