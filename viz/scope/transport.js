/** The transport bar: where the step is, how the views show it, and what a person can do with the runs. */

import { make, termLink } from "./dom.js";
import { icon } from "./icons.js";
import { KEYS } from "./keys.js";
import { percent, quoted } from "./words.js";

const SPEEDS = [1, 2, 4, 8, 16, 30, 60];

export function mountTransport(element, session, parts) {
  const { store } = session;
  const press = (key) => (event) => KEYS[key][1](session, parts, event);
  const range = make("input", {
    type: "range",
    class: "scope-range",
    min: 0,
    value: 0,
    step: 1,
    "aria-label": "step",
  });
  range.addEventListener("input", () => store.goTo(Number(range.value)));
  const number = numberBox(store, range);
  const total = make("span", { class: "scope-total" });
  const play = button(press, icon("play"), "play or pause", " ");
  const follow = button(press, "Follow", "stay on the newest step", "f");
  const stopTitle = "stop the runs; what was decoded stays";
  const stop = make("button", { type: "button", class: "scope-stop", title: stopTitle }, "Stop");
  stop.addEventListener("click", () => session.stop());
  const speeds = SPEEDS.map((value) => [value, speedText(value)]);
  const speed = choice("speed", speeds, (value) => store.set({ speed: Number(value) }));
  const moves = group(...stepButtons(press, play), speed);
  const place = group(termLink("step"), number, total, follow);
  const bar = make(
    "div",
    { class: "scope-bar" },
    formButton(),
    moves,
    place,
    group(...jumpButtons(press)),
    stop,
  );
  element.append(bar, range);
  parts.goTo = () => (number.focus(), number.select());
  const draw = (state, changed) =>
    show({ range, number, total, play, follow, speed, stop }, session, changed);
  store.add({ keys: ["step", "playing", "follow", "speed", "runA", "runB"], draw });
}

const group = (...children) => make("div", { class: "scope-group" }, ...children);

/** A button that does what a key does. */
function button(press, content, name, key) {
  const title = `${name} (${key === " " ? "Space" : key})`;
  return make("button", { type: "button", title, "aria-label": name, onclick: press(key) }, content);
}

function stepButtons(press, play) {
  return [
    button(press, icon("first"), "first step", "Home"),
    button(press, icon("back"), "one step back", "ArrowLeft"),
    play,
    button(press, icon("on"), "one step on", "ArrowRight"),
    button(press, icon("last"), "last step", "End"),
  ];
}

function jumpButtons(press) {
  return [
    button(press, "‹ refresh", "previous refresh", ","),
    button(press, "refresh ›", "next refresh", "."),
    button(press, "‹ diff", "previous difference", "D"),
    button(press, "diff ›", "next difference", "d"),
  ];
}

const speedText = (value) => `${value} steps/s`;

/** The field that a step's number is typed into. */
function numberBox(store, range) {
  const number = make("input", { type: "number", min: 0, class: "scope-number", "aria-label": "go to step" });
  number.addEventListener("change", () => {
    if (number.value === "") number.value = store.state.step;
    else store.goTo(Number(number.value));
  });
  number.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") number.value = store.state.step;
    if (key === "Escape" || key === "Enter") range.focus(); // where the keys of the Scope act again
  });
  return number;
}

/** The bar as the state has it. */
function show({ range, number, total, play, follow, speed, stop }, session, changed) {
  const { store } = session;
  const { state } = store;
  const last = Math.max(store.steps - 1, 0);
  range.max = last;
  range.value = state.step;
  range.disabled = !store.steps;
  range.setAttribute("aria-valuetext", valueText(store));
  if (document.activeElement !== number) number.value = state.step;
  number.max = last;
  total.textContent = `of ${last}`;
  if (changed.has("playing")) play.replaceChildren(icon(state.playing ? "pause" : "play"));
  play.setAttribute("aria-pressed", state.playing);
  follow.setAttribute("aria-pressed", state.follow);
  if (!SPEEDS.includes(state.speed) && !speed.querySelector(`[value="${state.speed}"]`)) {
    speed.append(make("option", { value: state.speed }, speedText(state.speed))); // an address may name any
  }
  speed.value = state.speed;
  const stoppable = session.stoppable;
  stop.hidden = !stoppable.length;
  stop.disabled = stoppable.every((run) => run.stopping);
}

/** Gives the form's place to the views, or back. */
function formButton() {
  const attributes = {
    type: "button",
    "aria-label": "form",
    title: "show or hide the form",
    "aria-expanded": "true",
  };
  const button = make("button", attributes, "☰");
  button.addEventListener("click", () => {
    const hidden = document.querySelector("#bench")?.classList.toggle("rail-hidden");
    button.setAttribute("aria-expanded", !hidden);
  });
  return button;
}

/** A labelled select. */
export function choice(name, options, onChange) {
  const select = make("select", { "aria-label": name, title: name });
  for (const [value, text] of options) select.append(make("option", { value }, text));
  select.addEventListener("change", () => onChange(select.value));
  return select;
}

/** What a screen reader says of the step: "step 137 of 400, token “dog”, 11 of 28 layers refreshed". */
export function valueText(store) {
  const { step } = store.state;
  const parts = [`step ${step} of ${Math.max(store.steps - 1, 0)}`];
  for (const [which, run] of Object.entries(store.runs)) {
    if (!run?.steps) continue;
    const shown = store.stepOf(run);
    parts.push(
      `${which.toUpperCase()}: token ${quoted(run, shown)}, ${percent(run.refreshShare(shown))} of layers refreshed`,
    );
  }
  return parts.join(", ");
}
