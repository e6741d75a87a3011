/** Every image under every policy: sorted, filtered, and opened in the Scope where the texts first differ. */

import { Order, sortSelect } from "../sorting.js";
import { make } from "../dom.js";
import { percent, policyTitle } from "../words.js";

const PAGE = 25; // rows at a time
const NONE = "–";

/** @type {(import("../sorting.js").Sorted & {text: function(object): ?string, help: string, term?: string})[]} */
const COLUMNS = [
  {
    id: "sample",
    head: "Image",
    help: "the image, by its name in the data set",
    sort: (row) => row.sample.toLowerCase(),
    text: (row) => row.sample,
  },
  {
    id: "policy",
    head: "Policy",
    term: "policy",
    help: "how the prefix entries that stay in the cache are chosen",
    sort: (row) => policyTitle(row.policy).toLowerCase(),
    text: (row) => policyTitle(row.policy),
  },
  {
    id: "fidelity",
    head: "Fidelity",
    term: "fidelity",
    help: "ROUGE-L of the text to that of the uncompressed run",
    number: true,
    sort: (row) => row.fidelity,
    text: (row) => row.fidelity?.toFixed(3).replace(/^0/, "") ?? null,
  },
  {
    id: "rate",
    head: "Refresh rate",
    term: "refresh rate",
    help: "the share of layer-steps that selected anew",
    number: true,
    sort: (row) => row.refresh_rate,
    text: (row) => (row.refresh_rate === null ? null : percent(row.refresh_rate, 1)),
  },
  {
    id: "drift",
    head: "Drift",
    term: "drift",
    help: "mean drift over the decisions, as estimated",
    number: true,
    sort: (row) => row.mean_drift,
    text: (row) => row.mean_drift?.toFixed(3).replace(/^0/, "") ?? null,
  },
  {
    id: "right",
    head: "Right",
    term: "objects right",
    help: "objects of the scene that the text has right, or whether the answer is right",
    number: true,
    sort: (row) => (row.objects ? row.objects_right / row.objects : row.accuracy),
    text: rightText,
  },
  {
    id: "leaves",
    head: "First difference",
    help: "the step of the first token that differs from the uncompressed run",
    number: true,
    sort: (row) => (row.diverges_at < 0 ? null : row.diverges_at),
    text: (row) =>
      row.diverges_at === null ? null : row.diverges_at < 0 ? "none" : `step ${row.diverges_at}`,
  },
];

function rightText({ objects, objects_right: right, accuracy }) {
  if (objects) return `${right} of ${objects}`;
  return accuracy === null ? null : accuracy.toFixed(2);
}

export class Images {
  /**
   * @param {import("./desk.js").StudyDesk} desk
   * @param {number} section
   */
  constructor(desk, section) {
    this.desk = desk;
    this.section = section;
    this.rows = [];
    this.limit = PAGE;
    this.policy = "";
    this.order = new Order(COLUMNS, () => this.draw());
    this.filter = make("select", { "aria-label": "policy whose images are listed" });
    this.filter.addEventListener("change", () => ((this.policy = this.filter.value), this.draw()));
    this.said = make("span", { class: "scope-hint", role: "status" });
    const head = make("tr", {}, ...COLUMNS.map((column) => this.order.head(column)));
    head.append(make("th", { scope: "col" }, make("span", { class: "scope-spoken" }, "open")));
    this.body = make("tbody", {});
    this.body.addEventListener("click", ({ target }) => {
      const key = target.closest("tr")?.dataset.key;
      if (key) this.desk.open(key);
    });
    const table = make("table", { class: "study-table study-images" }, make("thead", {}, head), this.body);
    table.setAttribute("aria-label", "images and policies");
    this.more = make("button", {
      type: "button",
      class: "runs-button study-more",
      onclick: () => this.showMore(),
    });
    const bar = make(
      "div",
      { class: "study-images-bar" },
      this.filter,
      sortSelect(this.order, "as decoded"),
      this.said,
    );
    const hint = make(
      "p",
      { class: "study-note" },
      "A row opens in the Scope as run A beside the uncompressed run B, at the step where their texts first differ. Both are decoded anew, which takes a few seconds.",
    );
    this.element = make("div", {}, hint, bar, make("div", { class: "study-table-box" }, table), this.more);
  }

  get count() {
    return this.rows.length;
  }

  /** @param {object[]} rows of this section */
  fill(rows) {
    this.rows = rows;
    const policies = [...new Set(rows.map(({ policy }) => policy))];
    const options = [["", "all policies"], ...policies.map((name) => [name, policyTitle(name)])];
    const known = [...this.filter.options].map(({ value }) => value);
    if (JSON.stringify(known) !== JSON.stringify(options.map(([value]) => value))) {
      this.filter.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
      if (!policies.includes(this.policy)) this.policy = "";
      this.filter.value = this.policy;
    }
    this.draw();
  }

  showMore() {
    const first = this.limit;
    this.limit += PAGE;
    this.draw();
    this.body.children[first]?.querySelector("button").focus();
  }

  draw() {
    const chosen = this.rows.filter(({ policy }) => !this.policy || policy === this.policy);
    const shown = this.order.sorted(chosen).slice(0, this.limit);
    const focused = document.activeElement?.closest("tr")?.dataset.key;
    const held = this.body.contains(document.activeElement) ? focused : null;
    this.body.replaceChildren(...shown.map(rowOf));
    if (held) this.buttonOf(held)?.focus({ preventScroll: true });
    const rest = chosen.length - shown.length;
    this.said.textContent = rest ? `${shown.length} of ${chosen.length} rows` : `${chosen.length} rows`;
    this.more.hidden = !rest;
    this.more.textContent = `Show ${Math.min(rest, PAGE)} more`;
    this.tell();
  }

  /** What is being opened says so. */
  tell() {
    const { opening } = this.desk;
    for (const row of this.body.children) {
      const busy = row.dataset.key === opening;
      row.toggleAttribute("aria-busy", busy);
      row.querySelector("button").textContent = busy ? "Opening" : "Open";
    }
  }

  buttonOf(key) {
    return [...this.body.children].find((row) => row.dataset.key === key)?.querySelector("button");
  }
}

function rowOf(row) {
  const cells = COLUMNS.map(({ id, text, number }, at) => {
    const said = text(row);
    const about = {
      class: `study-${id}${number ? " study-number" : ""}${said === null ? " runs-missing" : ""}`,
    };
    return make(at ? "td" : "th", { ...about, scope: at ? null : "row" }, said ?? NONE);
  });
  const leaves = row.diverges_at >= 0 ? `, at step ${row.diverges_at}` : "";
  const label = `open ${policyTitle(row.policy)}, ${row.sample} in the Scope${leaves}`;
  const button = make("button", { type: "button", class: "runs-action", "aria-label": label }, "Open");
  return make("tr", { "data-key": row.key }, ...cells, make("td", { class: "study-open" }, button));
}
