/** The running refresh rate: the share of all decisions up to a step that refreshed, against rho. */

import { targetRate } from "../target.js";
import { percent } from "../words.js";
import { describeRuns, drawLine, drawScale, shownRuns } from "./chart.js";
import { rate } from "./series.js";

const HEIGHT = 58;
const [TOP, BOTTOM] = [7, 52];
const DASH = 4; // CSS pixels

/** @param {import("./timelines.js").Stage} stage @returns {import("./frame.js").RowSpec} */
export function rateRow(stage) {
  const { store, axis, look } = stage;
  const y = (share) => BOTTOM - (BOTTOM - TOP) * share;
  return {
    id: "rate",
    name: "refresh rate",
    term: "refresh rate",
    unit: () => `so far, %${shownRuns(store).some(([, run]) => targetOf(run) !== null) ? "\n- - rho" : ""}`,
    height: () => HEIGHT,
    draw(context) {
      const runs = shownRuns(store);
      const marks = [0, 0.5, 1].map((share) => ({ y: y(share), label: String(100 * share) }));
      drawScale(context, stage, marks);
      for (const [which, run] of runs) {
        if (targetOf(run) !== null)
          drawTarget(context, axis, (step) => y(targetOf(run, step)), look[which], which === "b" ? DASH : 0);
        drawLine(context, axis, rate.of(run), axis.span(run), y, { colour: look[which] });
      }
    },
    describe: (step) => describeRuns(store, step, (run) => told(run, step)),
  };
}

const targetOf = (run, step = 0) => targetRate({ policy: run.policy, ...run.meta }, step);

/**
 * A dashed line, with a stair where an edit moves rho; B's starts a dash later, so that equal targets show
 * both.
 */
function drawTarget(context, axis, height, colour, offset) {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.setLineDash([DASH, DASH]);
  context.lineDashOffset = offset;
  context.beginPath();
  context.moveTo(0, height(axis.from));
  for (let step = axis.from; step <= axis.to; step += 1) {
    context.lineTo(axis.x(step), height(step));
    context.lineTo(axis.x(step + 1), height(step));
  }
  context.stroke();
  context.setLineDash([]);
  context.lineDashOffset = 0;
}

function told(run, step) {
  const share = rate.of(run)[step];
  if (Number.isNaN(share)) return "no decision so far";
  const target = targetOf(run, step);
  const against = target === null ? "" : ` · rho ${percent(target)}`;
  return `refresh rate so far ${percent(share, 1)}${against}`;
}
