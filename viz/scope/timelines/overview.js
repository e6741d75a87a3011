/** The whole run in one strip: how many layers refreshed at each step, and the range that the rows show. */

import { make } from "../dom.js";
import { GUTTER } from "./axis.js";
import { Brush } from "./brush.js";
import { shownRuns } from "./chart.js";
import { DRAWN_AFTER, addRow } from "./frame.js";
import { refreshShare, refreshes } from "./series.js";

const HEIGHT = 28;
const PADDING = 2;

export class Overview {
  /**
   * @param {import("./timelines.js").Stage} stage
   * @param {HTMLElement} parent
   * @param {function} addView
   */
  constructor(stage, parent, addView) {
    const [element] = addRow(stage, parent, overviewRow(stage));
    const plot = make("div", { class: "timelines-plot" });
    const mark = make("div", { class: "timelines-mark" });
    plot.append(mark);
    element.append(plot);
    plot.style.left = `${GUTTER}px`;
    addView(stage, [...DRAWN_AFTER, "step"], ({ step }) => {
      mark.hidden = !stage.whole.shows(step);
      mark.style.transform = `translateX(${stage.whole.centre(step) - 1}px)`;
    });
    new Brush(stage, plot, addView);
  }
}

function overviewRow({ store, whole, look }) {
  return {
    id: "overview",
    name: "overview",
    unit: () => "whole run",
    height: () => HEIGHT,
    draw(context) {
      context.fillStyle = look.line;
      const runs = shownRuns(store).filter(([, run]) => refreshes.of(run)[run.steps - 1] > 0);
      const [low, high] = [HEIGHT - PADDING, PADDING];
      const middle = HEIGHT / 2;
      const both = runs.length === 2;
      context.fillRect(0, both ? middle - 0.5 : low, whole.width, 1);
      runs.forEach(([which, run], index) => {
        const [zero, end] = both ? [middle, index ? low : high] : [low, high];
        context.fillStyle = look[which];
        drawShares(context, whole, refreshShare.of(run), run.steps, zero, end - zero);
      });
    },
  };
}

/** A bar per step, or per pixel with the mean of its steps where there are more steps than pixels. */
function drawShares(context, axis, shares, steps, zero, reach) {
  const per = Math.max(Math.ceil(1 / axis.column), 1);
  const width = per * axis.column - (axis.column > 3 ? 1 : 0);
  for (let step = 0; step < steps; step += per) {
    let sum = 0;
    const end = Math.min(step + per, steps);
    for (let each = step; each < end; each += 1) sum += shares[each];
    context.fillRect(axis.x(step), zero, width, (reach * sum) / (end - step));
  }
}
