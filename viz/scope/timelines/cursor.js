/** The column of the current step, and a ghost of the previewed one. A step moves them, and draws no row. */

import { make } from "../dom.js";
import { GUTTER } from "./axis.js";
import { DRAWN_AFTER } from "./frame.js";
import { tokensHeight } from "./tokens.js";

export class Cursor {
  /**
   * @param {import("./timelines.js").Stage} stage
   * @param {HTMLElement} rows
   * @param {function} addView
   */
  constructor(stage, rows, addView) {
    const current = make("div", { class: "timelines-cursor" });
    const ghost = make("div", { class: "timelines-cursor timelines-ghost" });
    rows.append(ghost, current);
    addView(stage, ["runA", "runB"], () => {
      for (const element of [current, ghost]) element.style.top = `${tokensHeight(stage.store)}px`;
    });
    addView(stage, [...DRAWN_AFTER, "step"], (state) => place(current, stage.axis, state.step));
    addView(stage, [...DRAWN_AFTER, "hoverStep"], (state) => place(ghost, stage.axis, state.hoverStep));
  }
}

function place(element, axis, step) {
  element.hidden = step === null || !axis.shows(step) || axis.width === 0;
  if (element.hidden) return;
  element.style.width = `${Math.max(axis.column, 1)}px`;
  element.style.transform = `translateX(${GUTTER + axis.x(step)}px)`;
}
