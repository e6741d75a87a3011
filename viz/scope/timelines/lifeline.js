/**
 * The life of one visual token: how many KV heads of the managed layers kept it, and when it drew much
 * attention.
 */

import { percent } from "../words.js";
import { describeRuns, shownRuns } from "./chart.js";
import { layerText } from "./frame.js";

const STRIP = 12; // CSS pixels
const LANE = 22; // a strip and the dots under it
const HIGH = 0.9; // quantile of a run's own steps from which attention on the token is marked

/** @param {import("./timelines.js").Stage} stage @returns {import("./frame.js").RowSpec} */
export function lifeLineRow(stage) {
  const { store } = stage;
  const lives = { a: new Life(), b: new Life() };
  const heads = (state) => (state.head === "mean" ? "" : `\nKV head ${state.head}`);
  return {
    id: "life",
    name: "life line",
    term: "patch",
    unit: (state) => `patch ${state.patch}\n${layerText(state, "all layers")}${heads(state)}`,
    keys: ["patch", "layer", "head"],
    height(state) {
      if (state.patch === null || !store.steps) return 0;
      return Math.max(shownRuns(store).length * LANE + 2, state.head === "mean" ? 44 : 56);
    },
    draw(context, state) {
      shownRuns(store).forEach(([which, run], lane) => {
        lives[which].update(run, state);
        drawLife(context, stage, which, run, lives[which], 2 + lane * LANE);
      });
    },
    describe: (step) => describeRuns(store, step, (_, which) => told(lives[which], step)),
  };
}

/** Kept shares and attention of one visual token at every step of a run. */
class Life {
  update(run, { patch, layer, head }) {
    const key = [run.id, run.steps, patch, layer, head].join();
    if (key === this.key) return;
    const known = patch < run.patches; // B may be a run of another picture
    const steps = known ? run.steps : 0;
    this.key = key;
    this.kept = keptShares(run, known ? run.patchPosition[patch] : -1, layer, head, steps);
    this.attention = Float32Array.from({ length: steps }, (_, step) => attentionOn(run, step, patch));
    this.high = quantile(this.attention, HIGH);
  }

  isHigh(step) {
    return this.attention[step] > 0 && this.attention[step] >= this.high;
  }
}

function attentionOn(run, step, patch) {
  return (run.rows.map_mean.at(step, patch) * run.rows.map_mean_scale.at(step)) / 255;
}

function quantile(values, share) {
  const sorted = values.slice().sort();
  return sorted.length ? sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)] : 0;
}

/** The share of (layer, KV head) pairs that kept the prompt entry at an index, f32 [N]. */
function keptShares(run, index, layer, head, steps) {
  const layers = run.chosenLayers(layer);
  const heads = head === "mean" ? Array.from({ length: run.heads }, (_, each) => each) : [head];
  const byRow = new Map(); // a selection is used at many steps: count it once
  const count = (row) => {
    if (row < 0 || index >= run.meta.prefix_length) return heads.length; // whole prefix, or in the window
    if (!byRow.has(row)) byRow.set(row, countHeads(run, row, heads, index));
    return byRow.get(row);
  };
  return Float32Array.from({ length: steps }, (_, step) => {
    const kept = layers.reduce((sum, each) => sum + count(run.rows.selected_row.at(step, each)), 0);
    return kept / (layers.length * heads.length);
  });
}

function countHeads(run, row, heads, index) {
  const width = run.meta.select;
  const all = run.selections.row(row);
  return heads.filter((head) => all.subarray(head * width, (head + 1) * width).includes(index)).length;
}

function drawLife(context, { axis, look }, which, run, life, top) {
  context.font = look.font(10, "bold");
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = look.words[which];
  context.fillText(which.toUpperCase(), -6, top + STRIP / 2);
  context.strokeStyle = look.line;
  context.lineWidth = 1;
  context.strokeRect(0.5, top + 0.5, axis.width - 1, STRIP - 1);
  const [first, last] = axis.span(run);
  context.fillStyle = look[which];
  for (let step = first, end = first; step <= last; step = end) {
    const share = life.kept[step];
    while (end <= last && life.kept[end] === share) end += 1; // one box for equal steps shows no seams
    context.globalAlpha = share && 0.15 + 0.85 * share;
    context.fillRect(axis.x(step), top + 1, axis.x(end) - axis.x(step), STRIP - 2);
  }
  context.globalAlpha = 1;
  drawDots(context, { axis, look }, [first, last], life, top + STRIP + 4);
}

function drawDots(context, { axis, look }, [first, last], life, y) {
  context.fillStyle = look.text;
  const radius = Math.min(Math.max(axis.column / 2, 1), 2.5);
  for (let step = first; step <= last; step += 1) {
    if (!life.isHigh(step)) continue;
    context.beginPath();
    context.arc(axis.centre(step), y, radius, 0, 2 * Math.PI);
    context.fill();
  }
}

function told(life, step) {
  if (step >= life.kept.length) return "no such patch";
  const [kept, attention] = [percent(life.kept[step]), percent(life.attention[step], 1)];
  const high = life.isHigh(step) ? ", in its highest tenth" : "";
  return `kept by ${kept} of KV heads · attention ${attention}${high}`;
}
