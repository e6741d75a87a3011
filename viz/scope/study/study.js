/** The tab Study: which study is shown, a form that starts one, how it goes, and what it found. */

import { StudyDesk } from "./desk.js";
import { make } from "../dom.js";
import { mountFindings } from "./findings.js";
import { mountForm } from "./form.js";
import { mountHead } from "./head.js";
import { mountList } from "./list.js";
import { NoticeCards } from "../notices.js";
import { theSession } from "../session.js";
import { watch } from "../sight.js";

/**
 * Build the tab inside an element. Called again for a new element, it takes the place of the earlier one.
 * @param {HTMLElement} element
 */
export function mountStudy(element) {
  window.rcrStudyAbort?.abort();
  const abort = new AbortController();
  window.rcrStudyAbort = abort;
  const { signal } = abort;
  const desk = new StudyDesk(theSession(), signal);
  const list = make("nav", { class: "study-list", "aria-label": "studies" });
  const form = make("details", { class: "study-form-box", open: matchMedia("(min-width: 901px)").matches });
  const rail = make("div", { class: "study-rail" }, list, form);
  const notices = make("div", { class: "scope-notices study-notices" });
  const head = make("section", { class: "study-head", "aria-label": "the study that is shown" });
  const findings = make("div", { class: "study-findings" });
  const shown = make("div", { class: "study-shown" }, notices, head, findings);
  element.classList.add("scope", "scope-runs", "scope-study");
  element.replaceChildren(rail, shown);
  const cards = new NoticeCards(notices, (notice) => desk.dismiss(notice));
  desk.add(() => cards.show(desk.notices));
  mountList(list, desk);
  mountForm(form, desk);
  mountHead(head, desk);
  mountFindings(findings, desk, signal);
  watch(element, (seen) => desk.show(seen), signal);
}
