/** A table of findings: numbers at the right, the ends of intervals quieter, the best of a column bold. */

import { make } from "../dom.js";
import { policyTitle } from "../words.js";

// What is better where it is higher; of other columns no value is the best one.
const HIGHER = new Set(["fidelity", "objects_right", "recall", "reference_rouge", "accuracy", "cider"]);
const REFERENCE = "full";

/**
 * @typedef {[string, string, ?number]} Cell its text, the ends of its interval, its number
 * @typedef {{id: string, head: string, kind: string, help: string}} Column
 * @typedef {{id: string, title: string, note: string, columns: Column[], rows: Cell[][]}} Table
 */

export class FindingTable {
  /**
   * @param {string} id
   * @param {number} section
   * @param {import("./desk.js").StudyDesk} desk
   */
  constructor(id, section, desk) {
    this.title = make("h4", {});
    const button = (suffix, text) => {
      const onclick = () => desk.save(`tables/${section}/${id}.${suffix}`);
      return make("button", { type: "button", class: "runs-action", onclick }, text);
    };
    this.buttons = [button("csv", "CSV"), button("tex", "LaTeX")];
    this.head = make("tr", {});
    this.body = make("tbody", {});
    this.table = make("table", { class: "study-table" }, make("thead", {}, this.head), this.body);
    // It scrolls sideways where there is no room, and only what has the focus can be scrolled by keyboard.
    this.box = make("div", { class: "study-table-box", tabindex: 0, role: "region" }, this.table);
    this.note = make("p", { class: "study-note" });
    const bar = make("div", { class: "runs-figure-head" }, this.title, ...this.buttons);
    this.element = make("div", { class: "study-table-part" }, bar, this.box, this.note);
  }

  /** @param {Table} told */
  fill({ title, note, columns, rows }) {
    this.title.textContent = title;
    this.note.textContent = note;
    this.box.setAttribute("aria-label", title);
    for (const button of this.buttons) button.setAttribute("aria-label", `${button.textContent} of ${title}`);
    const best = columns.map((column, at) => bestOf(columns, rows, at));
    this.head.replaceChildren(
      ...columns.map(({ head, help, kind }) =>
        make("th", { scope: "col", title: help, class: kind !== "text" && "study-number" }, head),
      ),
    );
    this.body.replaceChildren(
      ...rows.map((row) => make("tr", {}, ...row.map((cell, at) => cellOf(cell, columns[at], best[at], at)))),
    );
  }
}

/** @param {Cell} cell */
function cellOf([text, ends, value], { id, kind }, best, at) {
  const words = kind === "text";
  const said = id === "policy" ? policyTitle(text) : text;
  const tag = at ? "td" : "th";
  const about = { class: words ? null : "study-number", scope: at ? null : "row" };
  if (words) return make(tag, about, said);
  const top = best !== null && value === best;
  const mean = make(top ? "strong" : "span", {}, said);
  return make(tag, about, mean, ends ? make("span", { class: "study-ends" }, ` ${ends}`) : null);
}

/** The highest value of a column, of several; the uncompressed run, which all is held against, is not one. */
function bestOf(columns, rows, at) {
  if (!HIGHER.has(columns[at].id)) return null;
  const policy = columns.findIndex(({ id }) => id === "policy");
  const values = rows
    .filter((row) => policy < 0 || row[policy][0] !== REFERENCE)
    .map((row) => row[at][2])
    .filter((value) => value !== null);
  return new Set(values).size > 1 ? Math.max(...values) : null;
}
