/** The main numbers of a section, from its first table: how near RCR stays, and what that takes. */

import { make, termLink } from "../dom.js";
import { policyTitle } from "../words.js";

const MAIN = "rcr";
const SEES_ALL = "oracle"; // it has read the uncompressed text before it selects

/** @param {{tables: import("./table.js").Table[]}} section @returns {HTMLElement[]} */
export function factsOf({ tables }) {
  const table = tables.find(({ id }) => id === "fidelity");
  if (!table) return [];
  const at = Object.fromEntries(table.columns.map(({ id }, number) => [id, number]));
  const compressed = table.rows.filter((row) => row[at.policy][0] !== "full");
  const row = compressed.find((one) => one[at.policy][0] === MAIN) ?? nearest(compressed, at.fidelity);
  if (!row) return [];
  const name = policyTitle(row[at.policy][0]);
  const cell = (id) => (at[id] === undefined ? null : row[at[id]]);
  const uncompressed = table.rows.find((one) => one[at.policy][0] === "full");
  const honest = compressed.filter((one) => one[at.policy][0] !== SEES_ALL);
  const best = nearest(honest, at.fidelity);
  const tied = honest.filter((one) => best && one[at.fidelity][0] === best[at.fidelity][0]);
  return [
    fact(cell("fidelity"), `${name}, `, termLink("fidelity"), " to the uncompressed text"),
    fact(signed(cell("over_bacon")), `${name} over BACON, paired by image`),
    fact(cell("refresh_rate"), termLink("refresh rate"), ` of ${name}`),
    fact(cell("reads"), "vectors read per KV head and layer-step, at most"),
    fact(cell("objects_right"), `objects right${told(uncompressed, at.objects_right, "uncompressed")}`),
    fact(cell("accuracy"), `accuracy${told(uncompressed, at.accuracy, "uncompressed")}`),
    tied.length && !tied.includes(row) ? fact(best[at.fidelity], `nearest: ${namesOf(tied, at)}`) : null,
  ].filter(Boolean);
}

const namesOf = (rows, at) => rows.map((row) => policyTitle(row[at.policy][0])).join(", ");

function fact(cell, ...about) {
  if (!cell || cell[2] === null) return null;
  const [text, ends] = cell;
  const number = make(
    "span",
    { class: "study-fact-number" },
    text,
    make("span", { class: "study-ends" }, ` ${ends}`),
  );
  return make("li", { class: "study-fact" }, number, make("span", { class: "study-fact-about" }, ...about));
}

/** A difference says its direction. */
function signed(cell) {
  if (!cell || cell[2] === null || cell[2] <= 0) return cell;
  return [`+${cell[0]}`, cell[1], cell[2]];
}

function told(row, at, who) {
  const value = row?.[at];
  return value && value[2] !== null ? ` (${who}: ${value[0]})` : "";
}

function nearest(rows, at) {
  const there = rows.filter((row) => at !== undefined && row[at][2] !== null);
  return there.reduce((best, row) => (best && best[at][2] >= row[at][2] ? best : row), null);
}
