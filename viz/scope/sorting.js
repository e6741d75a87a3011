/** The order of the rows of a table: as they come, or by a column. */

import { make, termLink } from "./dom.js";

/**
 * @typedef {Object} Sorted
 * @property {string} id
 * @property {string} head
 * @property {boolean} [number] aligned at the right; the largest come first when sorted
 * @property {function(object): (number|string|null)} sort what rows are ordered by; null goes last
 */

export class Order {
  /**
   * @param {Sorted[]} columns
   * @param {function(): void} onChange
   */
  constructor(columns, onChange) {
    this.columns = columns;
    this.onChange = onChange;
    /** @type {?string} id of a column */
    this.by = null;
    this.down = false;
    this.marks = []; // of what shows the order
  }

  /** @param {?string} by */
  set(by, down = Boolean(this.column(by)?.number)) {
    this.by = by;
    this.down = down;
    for (const mark of this.marks) mark();
    this.onChange();
  }

  /** A head that sorts: first the useful way, then the other, then not at all. */
  press(id) {
    const first = Boolean(this.column(id).number);
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

  column(id) {
    return this.columns.find((column) => column.id === id) ?? null;
  }

  /** Rows in order; those without a value come last whichever way. Equals stay as they were. */
  sorted(rows) {
    const column = this.column(this.by);
    if (!column) return rows;
    const sign = this.down ? -1 : 1;
    return [...rows].sort((left, right) => {
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

/** The same choice where there is no room for heads. @param {string} first what the order is called as they come */
export function sortSelect(order, first) {
  const options = order.columns.map(({ id, head }) => make("option", { value: id }, head));
  const select = make("select", {}, make("option", { value: "" }, first), ...options);
  select.addEventListener("change", () => order.set(select.value || null));
  order.marks.push(() => (select.value = order.by ?? ""));
  return make("label", { class: "runs-sort" }, "Sort by ", select);
}
