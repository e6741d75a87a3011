/**
 * The tour: seven stops on the finished example, each with the view set up and the place of interest
 * outlined.
 */

import { make } from "./dom.js";
import { nextRefresh } from "./travel.js";

/** What a stop says, where to look, and how the view is set for it. */
const STOPS = [
  {
    title: "Two runs, one picture",
    text: ({ runs }) =>
      `A and B describe the same picture with the same model. Both keep ${runs.a.meta.select} of ${runs.a.meta.prefix_length} prefix entries per KV head; BACON (B) chose them once, at the prefill, and RCR (A) chooses again when it misses too much.`,
    at: ".scope-captions",
    view: () => ({ step: 0, layer: "mean", head: "mean", map: "attention", patch: null, diff: false }),
  },
  {
    title: "Where they part",
    text: () =>
      "This is the first word that differs (key d). The tint of a word is the attention on the picture, the bar under it the share of layers that refreshed. Struck-out words are wrong about the scene.",
    at: ".scope-captions",
    view: ({ compare }) => ({ step: compare.stop(0, 1) ?? 1 }),
  },
  {
    title: "What each of them still has",
    text: () =>
      "Outlined patches are kept, hatched ones evicted; a plus came in at this step, a minus went out. B is still left with what mattered at the beginning.",
    at: ".scope-panes",
    view: ({ compare }) => ({ step: (compare.stop(0, 1) ?? 1) + 3, layer: 3 }),
  },
  {
    title: "What they miss",
    text: () =>
      "Missed mass (key m): where this step would have looked among the patches that are evicted now. It lies where the words are going, and B cannot follow.",
    at: ".scope-panes",
    view: () => ({ map: "missed" }),
  },
  {
    title: "Why a layer refreshed",
    text: () =>
      "Drift above tau fires the trigger. The sentence gives the numbers; the chips are the kept entries, new ones with a plus. A dot goes to the next refresh of this layer.",
    at: ".scope-inspector",
    view: (store) => ({ map: "attention", step: nextRefresh(store, 1) ?? store.state.step }),
  },
  {
    title: "All steps at once",
    text: () =>
      "A column is a step, a row a layer, a red cell a refresh. Below: drift against tau, which is steered until the refresh rate comes to its target rho. Click anywhere to go there.",
    at: ".scope-lower",
    view: () => ({}),
  },
  {
    title: "The other way round",
    text: () =>
      "Click a patch: its life line shows when it was kept, and the inspector which words used it most. Now it is yours: ? lists the keys, Run makes a run of your own.",
    at: ".scope-panes",
    view: ({ runs }) => ({ patch: brightest(runs.a) }),
  },
];

/** The patch that the current run looked at most, over all steps. */
function brightest(run) {
  const sums = new Float64Array(run.patches);
  for (let step = 1; step < run.steps; step += 1) {
    const scale = run.rows.map_mean_scale.at(step);
    run.rows.map_mean.row(step).forEach((pixel, patch) => (sums[patch] += pixel * scale));
  }
  return sums.indexOf(Math.max(...sums));
}

/** Builds the tour's panel; returns the function that starts it, once the example is open. */
export function mountTour(element, session) {
  const { store } = session;
  let at = 0;
  const moves = {
    back: () => show(at - 1),
    next: () => (at + 1 < STOPS.length ? show(at + 1) : close()),
    close: () => close(),
  };
  const { panel, title, text, count, back, next } = buildPanel(moves);
  element.append(panel);
  const unmark = () => element.querySelector(".scope-toured")?.classList.remove("scope-toured");
  const close = () => {
    unmark();
    panel.hidden = true;
    element.querySelector(".scope-range").focus();
  };
  const show = (stop) => {
    at = stop;
    const { view, at: selector, title: heading, text: says } = STOPS[at];
    store.set({ ...view(store), follow: false, playing: false });
    title.textContent = heading;
    text.textContent = says(store);
    count.textContent = `${at + 1} of ${STOPS.length}`;
    back.disabled = at === 0;
    next.textContent = at + 1 < STOPS.length ? "Next" : "Done";
    unmark();
    const target = element.querySelector(selector);
    target.classList.add("scope-toured");
    target.scrollIntoView({ block: "nearest" });
    panel.hidden = false;
    next.focus({ preventScroll: true });
  };
  return () => show(0);
}

function buildPanel(moves) {
  const title = make("h3", {});
  const text = make("p", {});
  const count = make("span", { class: "scope-tour-count" });
  const button = (name, onclick) => make("button", { type: "button", onclick }, name);
  const [back, next] = [button("Back", moves.back), button("Next", moves.next)];
  const bar = make("div", { class: "scope-tour-bar" }, count, back, next, button("Close", moves.close));
  const about = { class: "scope-tour", role: "dialog", "aria-label": "tour", hidden: true };
  const panel = make("aside", about, title, text, bar);
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation(); // elsewhere it clears the picked patch and the range
    moves.close();
  });
  return { panel, title, text, count, back, next };
}
