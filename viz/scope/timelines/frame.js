/** A row of the timelines: its name in the gutter, and a canvas over the full width, drawn on demand. */

import { fitted } from "../canvas.js";
import { make } from "../dom.js";
import { GUTTER } from "./axis.js";

/** What moves the axis or the colours; every row is drawn again after these. */
export const DRAWN_AFTER = ["a", "b", "runA", "runB", "range", "size", "theme"];

/**
 * @typedef {Object} RowSpec
 * @property {string} id
 * @property {string} name
 * @property {string} [term] of the glossary
 * @property {"a"|"b"} [run] the one that the row is of; its letter stands under the name
 * @property {function(State): string} [unit] stands under the name
 * @property {string[]} [keys] beside `DRAWN_AFTER`
 * @property {function(State): number} height in CSS pixels; 0 hides the row
 * @property {function(CanvasRenderingContext2D, State, number): void} draw from the end of the gutter, x = 0
 * @property {function(number, number, State): ?string} [describe] what lies at a step and a height
 * @property {function(number): ?number} [layerAt] the layer at a height, where the row shows layers
 */

/**
 * Build a row, and draw it whenever something changed that it depends on.
 * @param {import("./timelines.js").Stage} stage
 * @param {HTMLElement} parent
 * @param {RowSpec} row
 * @returns {[HTMLElement, RowSpec]}
 */
export function addRow(stage, parent, row) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const unit = make("span", { class: "timelines-unit" });
  const name = row.term ? make("a", { href: "#", "data-term": row.term }, row.name) : row.name;
  const label = make("div", { class: "timelines-name" }, make("span", {}, name), runName(row.run), unit);
  const element = make("div", { class: `timelines-row timelines-${row.id}` }, canvas, label);
  parent.append(element);
  const draw = (state) => {
    const height = row.height(state);
    element.hidden = !height;
    if (!height || !stage.width) return;
    unit.textContent = row.unit?.(state) ?? "";
    const context = fitted(canvas, stage.width, height);
    context.translate(GUTTER, 0);
    row.draw(context, state, height);
  };
  const keys = [...DRAWN_AFTER, ...(row.keys ?? [])];
  stage.signal.addEventListener("abort", stage.store.add({ keys, draw }), { once: true });
  return [element, row];
}

function runName(run) {
  return run ? make("b", { class: `timelines-run-${run}` }, `run ${run.toUpperCase()}`) : null;
}

/** How a row names the chosen layer; `all` are the words for all of them. */
export const layerText = (state, all) => (state.layer === "mean" ? all : `layer ${state.layer}`);
