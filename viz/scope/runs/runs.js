/** The tab Runs: opens files, lists the runs, chooses the pair of the Scope, and draws figures. */

import { Desk } from "./desk.js";
import { make } from "../dom.js";
import { mountChoice } from "./choice.js";
import { mountFigures } from "./figures.js";
import { mountOpening, takeDrops } from "./opening.js";
import { mountTable } from "./table.js";
import { NoticeCards } from "../notices.js";
import { theSession } from "../session.js";
import { watch } from "../sight.js";

/**
 * Build the tab inside an element. Called again for a new element, it takes the place of the earlier one.
 * @param {HTMLElement} element
 */
export function mountRuns(element) {
  window.rcrRunsAbort?.abort();
  const abort = new AbortController();
  window.rcrRunsAbort = abort;
  const { signal } = abort;
  const desk = new Desk(theSession(), signal);
  const place = (name) => make("div", { class: name });
  const names = ["runs-opening", "scope-notices", "runs-choice", "runs-list"];
  const [opening, notices, choice, table] = names.map(place);
  const figures = make("section", { class: "runs-figures", "aria-label": "figures" });
  element.classList.add("scope", "scope-runs");
  element.replaceChildren(opening, notices, choice, table, figures);
  mountOpening(opening, desk);
  const cards = new NoticeCards(notices, (notice) => desk.dismiss(notice));
  desk.add(() => cards.show(desk.notices));
  mountChoice(choice, desk);
  mountTable(table, desk, signal);
  mountFigures(figures, desk, signal);
  takeDrops(element, opening, desk, signal);
  watch(element, (seen) => desk.list.show(seen), signal); // nothing is asked for while nobody looks
}
