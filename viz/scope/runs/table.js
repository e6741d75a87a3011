/** The table of the runs, in groups; its heads sort it. */

import { COLUMNS } from "./columns.js";
import { badge, make } from "../dom.js";
import { Pictures } from "./pictures.js";
import { RunRow } from "./row.js";
import { Order, sortSelect } from "../sorting.js";

const NAME = { id: "name", head: "Name", sort: (run) => run.label.toLowerCase() };
const WIDTH = COLUMNS.length + 5; // with A, B, picture, name and actions
const EMPTY = "None yet. Press Run in the Scope tab, or open a .rcr file.";
const GROUPS = [
  { name: "Yours", holds: (run) => run.mine, empty: EMPTY },
  { name: "From links", holds: (run) => run.shared },
  { name: "Examples", holds: (run) => !run.mine && !run.shared },
];

/**
 * @param {HTMLElement} element
 * @param {import("./desk.js").Desk} desk
 */
export function mountTable(element, desk, signal) {
  const pictures = new Pictures(desk.client, signal);
  const order = new Order([NAME, ...COLUMNS], () => draw());
  const status = make("p", { class: "runs-status", role: "status" });
  const groups = GROUPS.map((group) => groupBody(group));
  const table = make("table", { class: "runs-table", role: "table", "aria-label": "runs" }, head(order));
  table.append(...groups.map(({ body }) => body));
  element.append(sortSelect(order, "newest first"), make("div", { class: "runs-table-box" }, table), status);
  /** @type {Map<string, RunRow>} */
  const rows = new Map();
  const draw = () => {
    const { list } = desk;
    const listed = new Map(list.runs.map((run) => [run.id, run]));
    for (const [id, row] of rows) if (!listed.has(id)) remove(row, rows);
    for (const [id, run] of listed) {
      if (rows.has(id)) rows.get(id).update(run);
      else rows.set(id, new RunRow(run, desk, pictures));
    }
    for (const group of groups) fill(group, order.sorted(list.runs.filter(group.holds)), rows, list.known);
    status.textContent = list.error ? `${list.error.message}. The list may be out of date.` : "";
    if (!list.known && !list.error) status.textContent = "asking the server for its runs";
  };
  desk.add(draw);
}

/** The focus of a row that goes away passes to its neighbour. */
function remove(row, rows) {
  const held = row.element.contains(document.activeElement);
  const next = row.element.nextElementSibling ?? row.element.previousElementSibling;
  row.close();
  rows.delete(row.id);
  if (held) next?.querySelector("button:not([hidden])")?.focus();
}

function head(order) {
  const plain = (text, about) => make("th", { role: "columnheader", scope: "col", title: about }, text);
  const cells = [
    plain(badge("a"), "the run to show as A"),
    plain(badge("b"), "the run to show as B"),
    plain(make("span", { class: "scope-spoken" }, "picture"), "the picture"),
    order.head({ id: "name", head: "Name", help: "the picture's name, or the file's; and when it began" }),
    ...COLUMNS.map((column) => order.head(column)),
    plain(make("span", { class: "scope-spoken" }, "actions"), ""),
  ];
  return make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...cells));
}

function groupBody(group) {
  const count = make("span", { class: "runs-count" });
  const name = make("th", { role: "rowheader", scope: "rowgroup", colspan: WIDTH }, group.name, count);
  const title = make("tr", { role: "row", class: "runs-group" }, name);
  const body = make("tbody", { role: "rowgroup" }, title);
  if (!group.empty) return { ...group, count, title, body };
  const cell = make("td", { role: "cell", colspan: WIDTH }, group.empty);
  const emptyRow = make("tr", { role: "row", class: "runs-empty" }, cell);
  body.append(emptyRow);
  return { ...group, count, title, body, emptyRow };
}

/** Put the rows of a group in order. Only what is out of place moves: moving would take the focus away. */
function fill({ body, title, emptyRow, count }, runs, rows, known) {
  body.hidden = !runs.length && !emptyRow;
  if (emptyRow) emptyRow.hidden = runs.length > 0 || !known;
  count.textContent = runs.length ? String(runs.length) : "";
  let before = title;
  for (const { id } of runs) {
    const { element } = rows.get(id);
    if (before.nextElementSibling !== element) before.after(element);
    before = element;
  }
}
