/**
 * Timelines: rows that share one axis of steps. A token, the refreshes at its step and what they exchanged
 * stand in one column.
 */

import { make } from "../dom.js";
import { Axis } from "./axis.js";
import { changesRow } from "./changes.js";
import { Cursor } from "./cursor.js";
import { driftRow } from "./drift.js";
import { DRAWN_AFTER, addRow } from "./frame.js";
import { makeLegend } from "./legend.js";
import { lifeLineRow } from "./lifeline.js";
import { Look } from "./look.js";
import { Overview } from "./overview.js";
import { listenToPointer } from "./pointer.js";
import { rasterRow } from "./raster.js";
import { rateRow } from "./rate.js";
import { stepsRow } from "./steps.js";
import { tokensRow } from "./tokens.js";
import { Tooltip } from "./tooltip.js";

/**
 * What all rows share.
 * @typedef {Object} Stage
 * @property {import("../store.js").Store} store
 * @property {Axis} axis of the shown range
 * @property {Axis} whole of the whole run
 * @property {Look} look
 * @property {number} width of the rows with their gutter, 0 while they are not shown
 * @property {AbortSignal} signal
 */

/**
 * @param {HTMLElement} element
 * @param {import("../store.js").Store} store
 * @param {AbortSignal} signal takes everything down again
 */
export function mountTimelines(element, store, signal) {
  element.classList.add("scope-timelines");
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", "timelines");
  const stage = { store, axis: new Axis(), whole: new Axis(), look: new Look(element), width: 0, signal };
  addView(stage, ["theme"], () => stage.look.read());
  addView(stage, DRAWN_AFTER, (state) => {
    stage.axis.update(state.range, store.steps, stage.width);
    stage.whole.update(null, store.steps, stage.width);
  });
  const rows = make("div", { class: "timelines-rows" });
  const empty = make("p", { class: "timelines-empty" }, "nothing decoded yet");
  const legend = makeLegend();
  element.append(rows, empty);
  const add = (row) => addRow(stage, rows, row);
  const upper = [tokensRow(stage), rasterRow(stage, "a"), rasterRow(stage, "b")].map(add);
  rows.append(legend);
  const lower = [driftRow, rateRow, changesRow, lifeLineRow, stepsRow].map((row) => add(row(stage)));
  new Overview(stage, element, addView);
  new Cursor(stage, rows, addView);
  addView(stage, ["runA", "runB"], () => {
    empty.hidden = store.steps > 0;
    legend.hidden = store.steps === 0;
  });
  listenToPointer(stage, rows, new Map([...upper, ...lower]), new Tooltip(element));
  watchSize(stage, element);
  signal.addEventListener("abort", () => element.replaceChildren(), { once: true });
}

/** Register a view that goes when the timelines go. */
function addView({ store, signal }, keys, draw) {
  signal.addEventListener("abort", store.add({ keys, draw }), { once: true });
}

function watchSize(stage, element) {
  const observer = new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width === stage.width) return;
    stage.width = width;
    stage.store.signal("size");
  });
  observer.observe(element);
  stage.signal.addEventListener("abort", () => observer.disconnect(), { once: true });
}
