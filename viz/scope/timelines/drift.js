/** Drift of the chosen layer against tau; triangles where that layer refreshed. */

import { short } from "../words.js";
import { describeRuns, drawLine, drawScale, largest, roundUp, shownRuns } from "./chart.js";
import { layerText } from "./frame.js";
import { drift, tau } from "./series.js";

const HEIGHT = 66;
const [TOP, BOTTOM] = [7, 60]; // of the scale
const LANE = 7; // for the triangles of a run
const LONGEST_LABEL = 6; // characters that fit beside the unit

/** @param {import("./timelines.js").Stage} stage @returns {import("./frame.js").RowSpec} */
export function driftRow(stage) {
  const { store, axis, look } = stage;
  return {
    id: "drift",
    name: "drift",
    term: "drift",
    unit(state) {
      const compares = shownRuns(store).some(([, run]) => hasTau(run, state.layer));
      return `mass\n${layerText(state, "mean")}${compares ? "\n- - tau" : ""}`;
    },
    keys: ["layer"],
    height: (state) => HEIGHT + lanes(store, state),
    draw(context, state) {
      const runs = shownRuns(store).map(([which, run]) => [which, run, state.layer]);
      const ceiling = roundUp(Math.max(...runs.map(([, run, layer]) => largestShown(axis, run, layer)), 0));
      const top = TOP + lanes(store, state);
      const bottom = BOTTOM + lanes(store, state);
      const y = (value) => bottom - ((bottom - top) * value) / ceiling;
      const marks = ticks(runs.length ? ceiling : 0);
      drawScale(
        context,
        stage,
        marks.map((value) => ({ y: y(value), label: short(value) })),
      );
      for (const [which, run, layer] of runs) {
        const dashed = { colour: look[which], dash: [4, 3], width: 1 };
        if (hasTau(run, layer)) drawLine(context, axis, tau.of(run, layer), axis.span(run), y, dashed);
        drawLine(context, axis, drift.of(run, layer), axis.span(run), y, { colour: look[which] });
      }
      if (state.layer === "mean") return;
      runs.forEach(([which, run], lane) => {
        context.fillStyle = look[which];
        drawRefreshes(context, axis, run, state.layer, 4 + lane * LANE);
      });
    },
    describe: (step, _, { layer }) => describeRuns(store, step, (run) => told(run, step, layer)),
  };
}

function ticks(ceiling) {
  if (!ceiling) return [0];
  const half = ceiling / 2;
  return short(half).length > LONGEST_LABEL ? [0, ceiling] : [0, half, ceiling];
}

const lanes = (store, state) => (state.layer === "mean" ? 0 : LANE * shownRuns(store).length);

/** Whether a run compares drift with a threshold at all: tau is 0 where it does not. */
const hasTau = (run, layer) => largest(tau.of(run, layer), 0, run.steps - 1) > 0;

function largestShown(axis, run, layer) {
  const [first, last] = axis.span(run);
  return Math.max(largest(drift.of(run, layer), first, last), largest(tau.of(run, layer), first, last));
}

/** Triangles, or strokes where a triangle would run into the next. */
function drawRefreshes(context, axis, run, layer, y) {
  const [first, last] = axis.span(run);
  const half = Math.min(axis.column * 0.4, 3.5);
  context.beginPath();
  for (let step = first; step <= last; step += 1) {
    if (!run.decided(step, layer) || !run.fired(step, layer)) continue;
    const x = axis.centre(step);
    if (half < 1.5) {
      context.rect(x - 0.5, y - 2, Math.max(axis.column - 1, 1), 5);
      continue;
    }
    context.moveTo(x, y - 2.5);
    context.lineTo(x + half, y + 2.5);
    context.lineTo(x - half, y + 2.5);
  }
  context.fill();
}

function told(run, step, layer) {
  const [value, limit] = [drift.of(run, layer)[step], tau.of(run, layer)[step]];
  if (Number.isNaN(value)) return "no decision";
  const against = limit > 0 ? ` · tau ${short(limit)}` : "";
  return `drift ${short(value)}${against}`;
}
