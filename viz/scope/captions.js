/**
 * The captions of A and B: a word's background is the share of its attention on the image, the bar under it
 * the
 * share of layers that refreshed. Hover previews a step, a click goes there.
 */

import { badge, make, termLink } from "./dom.js";
import { targetRate } from "./target.js";
import { totals } from "./totals.js";
import { percent, policyTitle, short, statusText, tokenText } from "./words.js";

export function mountCaptions(element, session) {
  for (const which of ["a", "b"]) new Caption(element, session, which);
}

class Caption {
  constructor(parent, session, which) {
    const { store } = session;
    Object.assign(this, { session, store, which, run: null, spans: [], current: null, ghost: null });
    this.title = make("span", { class: "scope-policy" });
    this.status = make("span", { class: "scope-status" });
    this.grade = make("span", { class: "scope-grade" });
    this.facts = make("span", { class: "scope-facts" });
    this.fidelity = make("span", { class: "scope-fidelity", title: "ROUGE-L to the uncompressed run" });
    this.progress = make("progress", {
      class: "scope-progress",
      "aria-label": `progress of run ${which.toUpperCase()}`,
    });
    this.text = make("div", {
      class: "scope-words",
      role: "group",
      "aria-label": `Caption of run ${which.toUpperCase()}`,
    });
    const head = make(
      "div",
      { class: "scope-caption-head" },
      badge(which),
      this.title,
      this.status,
      this.facts,
      this.fidelity,
      this.grade,
    );
    parent.append(make("section", { class: "scope-caption" }, head, this.progress, this.text));
    this.text.addEventListener("pointermove", (event) => this.hover(event));
    this.text.addEventListener("pointerleave", () => store.set({ hoverStep: null }));
    this.text.addEventListener("click", (event) => this.click(event));
    store.add({ keys: [which === "a" ? "runA" : "runB", which], draw: () => this.grow() });
    store.add({ keys: ["compare", which === "a" ? "runA" : "runB"], draw: () => this.mark() });
    store.add({ keys: ["step", which === "a" ? "runA" : "runB"], draw: () => this.point() });
    store.add({ keys: ["fidelity", which], draw: () => this.showFidelity() });
    store.add({ keys: ["hoverStep"], draw: (state) => this.preview(state.hoverStep) });
  }

  stepAt(event) {
    const span = event.target.closest("[data-step]");
    return span ? Number(span.dataset.step) : null;
  }

  hover(event) {
    this.store.set({ hoverStep: this.stepAt(event) });
  }

  click(event) {
    const step = this.stepAt(event);
    if (step !== null) this.store.goTo(step);
  }

  /** Show the run's state, and append the words that are new. */
  grow() {
    const run = this.store.runs[this.which];
    if (run !== this.run) this.empty(run);
    this.title.textContent = run ? policyTitle(run.policy) : "";
    this.status.textContent = run ? statusText(run) : emptyText(this.store.state, this.which);
    this.status.classList.toggle("scope-live", Boolean(run?.live));
    this.facts.textContent = run?.steps > 1 ? factsText(run) : "";
    this.showGrade(run);
    this.showProgress(run);
    if (!run) return;
    const fresh = [];
    for (let step = this.spans.length; step < run.steps; step += 1) {
      const span = make("span", { class: "scope-word", "data-step": step }, tokenText(run, step));
      span.style.setProperty("--image", run.visualShare(step).toFixed(3));
      span.style.setProperty("--fire", run.refreshShare(step).toFixed(3));
      this.spans.push(span);
      fresh.push(span);
    }
    this.text.append(...fresh);
    const last = this.spans.length - 1;
    // that it was the stop token is known later
    if (last >= 0) this.spans[last].textContent = tokenText(run, last);
  }

  empty(run) {
    this.run = run;
    this.spans = [];
    this.current = this.ghost = null;
    this.text.replaceChildren();
  }

  showGrade(run) {
    const truth = run?.truth;
    this.grade.textContent = "";
    if (truth) this.grade.append(`${truth.right} of ${truth.total} `, termLink("objects right"));
    this.grade.title = truth?.invented ? `${truth.invented} described where there is none, or twice` : "";
    this.grade.style.setProperty("--right", truth ? truth.right / truth.total : 0);
    this.grade.hidden = !truth;
  }

  /** Loading and prefill have no known end; decoding ends at the limit of new tokens at the latest. */
  showProgress(run) {
    this.progress.style.visibility = run?.live ? "visible" : "hidden";
    if (!run?.live) return;
    if (run.status === "decoding") {
      this.progress.max = run.meta.settings.max_new_tokens;
      this.progress.value = run.steps;
    } else this.progress.removeAttribute("value");
  }

  showFidelity() {
    const value = this.session.references.fidelity(this.store.state[this.which]);
    this.fidelity.hidden = value === undefined;
    if (value !== undefined) this.fidelity.replaceChildren(termLink("fidelity"), ` ${value.toFixed(2)}`);
  }

  /** Mark what differs from the other run, and the wrong words of a scene. */
  mark() {
    const { run, spans, store, which } = this;
    if (!run) return;
    const wrong = run.truth?.wrong ?? [];
    let at = 0;
    spans.forEach((span, step) => {
      const [begin, end] = [run.tokenStart[step], run.tokenStart[step + 1]];
      while (at < wrong.length && wrong[at][1] <= begin) at += 1;
      const isWrong = at < wrong.length && wrong[at][0] < end && begin < end;
      span.classList.toggle("scope-wrong", isWrong);
      span.classList.toggle("scope-differs", store.compare.differs(which, step));
    });
  }

  point() {
    const { run, store } = this;
    this.current?.classList.remove("scope-current");
    this.current?.removeAttribute("aria-current");
    this.current = run?.steps ? this.spans[store.stepOf(run)] : null;
    if (!this.current) return;
    this.current.classList.add("scope-current");
    this.current.setAttribute("aria-current", "step");
    this.reveal(this.current);
  }

  /** Scroll the caption's own box, never the page. */
  reveal(span) {
    const top = span.offsetTop; // within the box, which is positioned
    const box = this.text;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + span.offsetHeight > box.scrollTop + box.clientHeight) {
      box.scrollTop = top + span.offsetHeight - box.clientHeight;
    }
  }

  preview(step) {
    this.ghost?.classList.remove("scope-ghost");
    this.ghost = step === null ? null : this.spans[step];
    this.ghost?.classList.add("scope-ghost");
    if (!this.ghost || this.ghost.title) return;
    const { run } = this;
    const image = percent(run.visualShare(step));
    this.ghost.title = `step ${step} · ${percent(run.refreshShare(step))} of layers refreshed · ${image} of attention on the image`;
  }
}

/** In the place of a run that there is not; A or B may be left out for good. */
function emptyText({ a, b }, which) {
  return a || b ? `no run ${which.toUpperCase()}` : "no run yet: choose a picture and press Run";
}

/** The run in two numbers: how often it refreshed (and was to), and how much its selections missed. */
function factsText(run) {
  const { decisions, refreshRate, meanDrift } = totals(run);
  if (!decisions) return "";
  const rho = targetRate({ policy: run.policy, ...run.meta }, run.steps - 1);
  const target = rho === null ? "" : ` of ${percent(rho)}`;
  return `refresh rate ${percent(refreshRate)}${target}, mean drift ${short(meanDrift)}`;
}
