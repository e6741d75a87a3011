/** Of the study that is shown: what it is, how it goes, Stop, and what can be taken home. */

import { isRunning } from "./desk.js";
import { make } from "../dom.js";
import { policyTitle } from "../words.js";

const SPOKEN_EVERY = 10_000; // ms: progress is read out, but not every run of it

/**
 * @param {HTMLElement} element
 * @param {import("./desk.js").StudyDesk} desk
 */
export function mountHead(element, desk) {
  const name = make("h2", { class: "study-title" });
  const bar = make("progress", { class: "study-progress", "aria-label": "progress of the study" });
  const said = make("span", { class: "study-standing" });
  const spoken = new Spoken();
  const button = (text, about, onclick, more = "") =>
    make("button", { type: "button", class: `runs-action ${more}`, title: about, onclick }, text);
  const stop = button("Stop", "end the study; the rows stay", () => desk.stop(desk.shown), "study-stop");
  const report = button("Report (HTML)", "every table and figure in one file that opens from disk", () =>
    desk.save("report.html"),
  );
  const results = button("Results (JSONL)", "a row per finished run, for the command line and Python", () =>
    desk.save("results.jsonl"),
  );
  const drop = new Drop(desk);
  const actions = make("div", { class: "study-actions" }, stop, report, results, ...drop.elements);
  const going = make("div", { class: "study-going" }, bar, said);
  const failures = make("details", { class: "study-failures" });
  element.append(make("div", { class: "study-head-row" }, name, actions), going, failures, spoken.element);
  desk.add(() => {
    const { study } = desk;
    element.hidden = !study;
    if (!study) return;
    const running = isRunning(study);
    if (name.textContent !== study.label) name.textContent = study.label;
    going.hidden = study.public;
    bar.hidden = !running;
    bar.max = Math.max(study.total, 1);
    if (study.status === "waiting") bar.removeAttribute("value");
    else bar.value = study.done + study.failed;
    said.textContent = standing(study);
    spoken.say(`${study.label}: ${standing(study)}`, study.id + study.status);
    stop.hidden = !(study.mine && running);
    for (const one of [report, results]) one.disabled = !study.done;
    drop.update(study.mine && !running);
    fillFailures(failures, study);
  });
}

/** Where a study is, in a sentence. */
export function standing(study) {
  const { status, done, total, failed, left, error } = study;
  const of = `${done} of ${total} runs`;
  const lost = failed ? `, ${failed} failed` : "";
  switch (status) {
    case "waiting":
      return "waiting for the model";
    case "running":
      return `${of}${lost}, ${left === null ? "the time left is not known yet" : `about ${duration(left)} left`}`;
    case "stopped":
      return `stopped after ${of}${lost}; what is done stays`;
    case "failed":
      return `failed: ${error.message}${error.hint ? `; ${error.hint}` : ""}`;
    default:
      return `done, ${failed ? `${of}${lost}` : `${done} runs`}`;
  }
}

function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function fillFailures(element, { id, failures, failed }) {
  element.hidden = !failed;
  const told = `${id} ${failed}`;
  if (!failed || element.dataset.told === told) return;
  element.dataset.told = told;
  const items = failures.map(({ sample, policy, message, hint }) =>
    make("li", {}, `${policyTitle(policy)}, ${sample}: ${message}${hint ? ` (${hint})` : ""}`),
  );
  if (failed > failures.length) items.push(make("li", {}, `and ${failed - failures.length} more`));
  const summary = make("summary", {}, failed === 1 ? "1 run failed" : `${failed} runs failed`);
  element.replaceChildren(summary, make("ul", {}, ...items));
}

/** Progress for the ear: at once when the state changes, otherwise now and then. */
class Spoken {
  constructor() {
    this.element = make("p", { class: "scope-spoken", "aria-live": "polite" });
    this.last = 0;
    this.state = "";
  }

  say(text, state) {
    const now = performance.now();
    if (state === this.state && now - this.last < SPOKEN_EVERY) return;
    [this.state, this.last] = [state, now];
    if (this.element.textContent !== text) this.element.textContent = text;
  }
}

/** Drop, and the question before it. */
class Drop {
  constructor(desk) {
    const action = (text, onclick, more = "") =>
      make("button", { type: "button", class: `runs-action ${more}`, onclick }, text);
    this.drop = action("Drop", () => this.ask(true));
    this.drop.title = "remove this study from the server";
    const no = action("Keep it", () => this.ask(false));
    const yes = action("Drop it", () => (this.ask(false), desk.drop(desk.shown)), "runs-danger");
    const about = {
      class: "runs-buttons",
      role: "group",
      "aria-label": "drop this study for good?",
      hidden: true,
    };
    this.question = make("span", about, make("span", {}, "Gone for good?"), no, yes);
    this.question.addEventListener("keydown", (event) => event.key === "Escape" && this.ask(false));
    this.elements = [this.drop, this.question];
    this.may = null; // not known yet
  }

  ask(asking) {
    this.question.hidden = !asking;
    this.drop.hidden = asking || !this.may;
    (asking ? this.question.querySelector("button") : this.drop).focus();
  }

  update(may) {
    if (may === this.may) return;
    this.may = may;
    this.question.hidden = true;
    this.drop.hidden = !may;
  }
}
