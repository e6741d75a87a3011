/** What the shown study found: a section per model and data set, each with facts, figures, images and tables. */

import { StudyFigure } from "./figure.js";
import { isRunning } from "./desk.js";
import { make } from "../dom.js";
import { factsOf } from "./facts.js";
import { Images } from "./images.js";
import { FindingTable } from "./table.js";

const NEAR = "400px"; // from sight: then a figure is drawn

/**
 * @param {HTMLElement} element
 * @param {import("./desk.js").StudyDesk} desk
 */
export function mountFindings(element, desk, signal) {
  const empty = make("p", { class: "study-empty", role: "status" });
  const sections = make("div", { class: "study-sections", role: "group", "aria-label": "part of the study" });
  const body = make("div", { class: "study-body" });
  element.append(empty, sections, body);
  /** @type {?Section} */
  let section = null;
  let shown = "";
  desk.add(() => {
    const text = emptyText(desk);
    if (empty.textContent !== text) empty.textContent = text;
    const { found } = desk;
    if (!found) section = close(section, body);
    fillSections(sections, desk);
    if (!found) return;
    const told = found.sections[desk.section];
    const wanted = `${found.id} ${told.id}`;
    if (wanted !== shown || !section) {
      section = close(section, body);
      section = new Section(desk);
      body.replaceChildren(section.element);
      shown = wanted;
    }
    section.update(told);
  });
  const theme = new MutationObserver(() => section?.theme());
  theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  signal.addEventListener("abort", () => (theme.disconnect(), close(section, body)));
}

function close(section, body) {
  section?.close();
  body.replaceChildren();
  return null;
}

function emptyText({ study, studies, choices, found, failed }) {
  if (!choices) return "";
  if (failed && !found) return `${failed.message}${failed.hint ? `: ${failed.hint}` : ""}`;
  if (!study) {
    if (studies.length) return "Choose a study.";
    return (
      "A study runs several policies over many images and shows whether what you saw in one run is the rule: " +
      "how near each policy stays to the uncompressed text, what it reads, and where its texts first differ. " +
      "There is none here yet; start one of a few images, which takes about a second a run."
    );
  }
  if (found) return "";
  if (study.done) return "Analysing the runs.";
  return isRunning(study) ? "The first figures come when the first run is done." : "This study has no rows.";
}

function fillSections(element, desk) {
  const titles = desk.found?.sections.map(({ title }) => title) ?? [];
  element.hidden = titles.length < 2;
  const known = [...element.children].map(({ textContent }) => textContent);
  if (JSON.stringify(known) !== JSON.stringify(titles)) {
    const button = (title, at) =>
      make("button", { type: "button", class: "runs-action", onclick: () => desk.chooseSection(at) }, title);
    element.replaceChildren(...titles.map(button));
  }
  [...element.children].forEach((one, at) => one.setAttribute("aria-pressed", at === desk.section));
}

/** One model on one data set. Made once; news are filled in, so that nothing jumps and the focus stays. */
class Section {
  /** @param {import("./desk.js").StudyDesk} desk */
  constructor(desk) {
    this.desk = desk;
    this.number = desk.section;
    this.version = null; // of what is filled in
    this.text = make("p", { class: "study-about" });
    this.facts = make("ul", { class: "study-facts", "aria-label": "the main numbers" });
    // In columns of their own, so that a high figure beside a low one leaves no hole.
    this.columns = [0, 1].map(() => make("div", { class: "study-column" }));
    this.grid = make("div", { class: "runs-grid" }, ...this.columns);
    this.images = new Images(desk, this.number);
    this.tables = make("div", { class: "study-tables" });
    const part = (head, ...children) =>
      make("section", { class: "study-part" }, make("h3", { class: "study-part-head" }, head), ...children);
    this.figuresPart = part("Figures", this.grid);
    this.imagesPart = part("Images", this.images.element);
    this.tablesPart = part("Tables", this.tables);
    this.parts = [this.figuresPart, this.imagesPart, this.tablesPart];
    this.jumps = make("p", { class: "study-jumps" }, ...this.parts.map(jump));
    this.element = make("div", {}, this.text, this.facts, this.jumps, ...this.parts);
    /** @type {Map<string, StudyFigure>} */
    this.figures = new Map();
    this.tablesById = new Map();
    this.queue = Promise.resolve();
    this.near = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: NEAR });
  }

  update(told) {
    const { found } = this.desk;
    this.images.tell();
    if (this.version === found) return;
    this.version = found;
    if (this.text.textContent !== told.text) this.text.textContent = told.text;
    this.facts.replaceChildren(...factsOf(told));
    this.fillFigures(told);
    this.fillTables(told);
    this.images.fill(found.images.filter(({ section }) => section === this.number));
    this.imagesPart.hidden = !this.images.count;
    this.figuresPart.hidden = !told.figures.length;
    this.parts.forEach((part, at) => (this.jumps.children[at].hidden = part.hidden));
    this.jumps.hidden = this.parts.filter(({ hidden }) => !hidden).length < 2;
  }

  fillFigures({ figures }) {
    for (const name of figures) {
      if (this.figures.has(name)) continue;
      const figure = new StudyFigure(name, this.number, this.desk);
      this.figures.set(name, figure);
      figure.element.style.order = this.figures.size;
      this.columns[(this.figures.size + 1) % 2].append(figure.element);
      this.near.observe(figure.element);
    }
    for (const figure of this.figures.values()) this.draw(figure);
  }

  seen(entries) {
    for (const { isIntersecting, target } of entries) {
      const figure = [...this.figures.values()].find(({ element }) => element === target);
      figure.near = isIntersecting;
      this.draw(figure);
    }
  }

  /** One figure after the other, those in sight alone. */
  draw(figure) {
    this.queue = this.queue.then(() => figure.draw(this.version));
  }

  fillTables({ tables }) {
    for (const table of tables) {
      if (!this.tablesById.has(table.id)) {
        const made = new FindingTable(table.id, this.number, this.desk);
        this.tablesById.set(table.id, made);
        this.tables.append(made.element);
      }
      this.tablesById.get(table.id).fill(table);
    }
  }

  theme() {
    for (const figure of this.figures.values()) figure.theme();
  }

  close() {
    this.near.disconnect();
    for (const figure of this.figures.values()) figure.close();
  }
}

/** A way to a part; not a link, whose address would take the place of the view's. */
function jump(part) {
  const head = part.querySelector("h3");
  head.tabIndex = -1;
  const onclick = () => {
    part.scrollIntoView({ block: "start" });
    head.focus({ preventScroll: true });
  };
  return make("button", { type: "button", class: "study-jump", onclick }, head.textContent);
}
