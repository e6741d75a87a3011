/** How many entries of the selection were exchanged at each step: bars, A upwards and B downwards. */

import { describeRuns, drawScale, largest, roundUp, shownRuns } from "./chart.js";
import { layerText } from "./frame.js";
import { exchanged } from "./series.js";

const HALF = 22; // CSS pixels for the bars of a run, where there are two
const PADDING = 6;

/** @param {import("./timelines.js").Stage} stage @returns {import("./frame.js").RowSpec} */
export function changesRow(stage) {
  const { store, axis, look } = stage;
  return {
    id: "changes",
    name: "exchanged",
    term: "just in, just out",
    unit: (state) => `entries\n${layerText(state, "all layers")}`,
    keys: ["layer"],
    height: () => 2 * (HALF + PADDING),
    draw(context, state) {
      const runs = shownRuns(store);
      const values = runs.map(([, run]) => exchanged.of(run, state.layer));
      const most = Math.max(...runs.map(([, run], index) => largest(values[index], ...axis.span(run))), 0);
      const ceiling = roundUp(most);
      const reach = runs.length === 2 ? HALF : 2 * HALF;
      const zero = PADDING + reach;
      const label = most ? String(ceiling) : "";
      const marks = [
        { y: zero, label: "0" },
        { y: zero - reach, label },
      ];
      if (runs.length === 2) marks.push({ y: zero + reach, label });
      drawScale(context, stage, marks);
      runs.forEach(([which, run], index) => {
        const upwards = index === 0;
        context.fillStyle = look[which];
        drawBars(context, axis, values[index], axis.span(run), zero, ((upwards ? -1 : 1) * reach) / ceiling);
      });
    },
    describe: (step, _, { layer }) => describeRuns(store, step, (run) => told(run, step, layer)),
  };
}

/** Bars from a line of zero; `unit` is the height of one entry, negative upwards. */
function drawBars(context, axis, values, [first, last], zero, unit) {
  const width = Math.max(axis.column > 3 ? axis.column - 1 : axis.column, 1);
  for (let step = first; step <= last; step += 1) {
    if (values[step]) context.fillRect(axis.x(step), zero, width, values[step] * unit);
  }
}

function told(run, step, layer) {
  const count = exchanged.of(run, layer)[step];
  const slots = run.chosenLayers(layer).length * run.heads * run.meta.select;
  return `${count} of ${slots} entries exchanged`;
}
