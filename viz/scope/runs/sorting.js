/** The order of the rows: as the server has it (newest first), or by a column. */

import { COLUMNS } from "./columns.js";
import { make, termLink } from "../dom.js";

const NAME = { id: "name", head: "Name", sort: (run) => run.label.toLowerCase() };
const SORTED = [NAME, ...COLUMNS];

export class Order {
  /** @param {function(): void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {?string} id of a column */
    this.by = null;
    this.down = false;
    this.marks = []; // of what shows the order
  }

  /** @param {?string} by */
  set(by, down = Boolean(columnOf(by)?.number)) {
    this.by = by;
    this.down = down;
    for (const mark of this.marks) mark();
    this.onChange();
  }

  /** A head that sorts: first the useful way, then the other, then not at all. */
  press(id) {
    const first = Boolean(columnOf(id).number);
    if (this.by !== id) this.set(id);
    else if (this.down === first) this.set(id, !first);
    else this.set(null);
  }

  /** @param {{id: string, head: string, help: string, term?: string, number?: boolean}} column */
  head({ id, head, help, term, number }) {
    const arrow = make("span", { class: "runs-arrow", "aria-hidden": "true" });
    const onclick = () => this.press(id);
    const button = make("button", { type: "button", title: help, onclick }, head, arrow);
    const cell = make(
      "th",
      { role: "columnheader", scope: "col", class: number && "runs-number" },
      button,
      term && about(head, term),
    );
    this.marks.push(() => {
      const chosen = this.by === id;
      arrow.textContent = chosen ? (this.down ? "▼" : "▲") : "";
      if (chosen) cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    return cell;
  }

  /** Runs in order; those without a value come last whichever way. Equals stay as they were. */
  sorted(runs) {
    const column = columnOf(this.by);
    if (!column) return runs;
    const sign = this.down ? -1 : 1;
    return [...runs].sort((left, right) => {
      const [one, other] = [column.sort(left) ?? null, column.sort(right) ?? null];
      if (one === null || other === null) return (one === null) - (other === null);
      const words = typeof one === "string";
      return sign * (words ? one.localeCompare(other, "en", { numeric: true }) : one - other);
    });
  }
}

/** The head itself sorts, so its term is a sign beside it. */
function about(head, term) {
  const link = termLink("?", term);
  link.setAttribute("aria-label", `what ${head} means`);
  return link;
}

const columnOf = (id) => SORTED.find((column) => column.id === id) ?? null;

/** The same choice where there is no room for heads. */
export function sortSelect(order) {
  const options = SORTED.map(({ id, head }) => make("option", { value: id }, head));
  const select = make("select", {}, make("option", { value: "" }, "newest first"), ...options);
  select.addEventListener("change", () => order.set(select.value || null));
  order.marks.push(() => (select.value = order.by ?? ""));
  return make("label", { class: "runs-sort" }, "Sort by ", select);
}
