/** Keys of the Scope. They act while the focus is in it or nowhere, never while a person types. */

import { togglePlay } from "./player.js";
import { moveHead, moveLayer, movePicture, nextRefresh, pickBrightest } from "./travel.js";

/** key -> [what the list of keys says, action(session, parts, event)]; parts: {goTo, zoomBy, copy, help} */
export const KEYS = {
  ArrowLeft: [
    "one step back (Shift: ten)",
    ({ store }, _, event) => store.goTo(store.state.step - (event.shiftKey ? 10 : 1)),
  ],
  ArrowRight: [
    "one step on (Shift: ten)",
    ({ store }, _, event) => store.goTo(store.state.step + (event.shiftKey ? 10 : 1)),
  ],
  Home: ["first step", ({ store }) => store.goTo(0)],
  End: ["last step", ({ store }) => store.goTo(store.steps - 1)],
  ArrowUp: ["previous layer (above layer 0: mean)", ({ store }) => moveLayer(store, -1)],
  ArrowDown: ["next layer", ({ store }) => moveLayer(store, 1)],
  "[": ["previous KV head", ({ store }) => moveHead(store, -1)],
  "]": ["next KV head", ({ store }) => moveHead(store, 1)],
  ".": ["next refresh in the chosen layer", ({ store }) => jump(store, nextRefresh(store, 1))],
  ",": ["previous refresh", ({ store }) => jump(store, nextRefresh(store, -1))],
  d: ["next difference between A and B", ({ store }) => jump(store, store.compare.stop(store.state.step, 1))],
  D: ["previous difference", ({ store }) => jump(store, store.compare.stop(store.state.step, -1))],
  " ": ["play or pause", ({ store }) => togglePlay(store)],
  f: ["follow the newest step", ({ store }) => follow(store)],
  g: ["go to a step", (_, parts) => parts.goTo()],
  x: ["swap A and B", (session) => session.swap()],
  c: ["map of differences A − B", ({ store }) => store.set({ diff: !store.state.diff })],
  s: [
    "colour scale: run or step",
    ({ store }) => store.set({ scale: store.state.scale === "run" ? "step" : "run" }),
  ],
  m: [
    "attention or missed mass",
    ({ store }) => store.set({ map: store.state.map === "missed" ? "attention" : "missed" }),
  ],
  p: ["pick the patch that is looked at most; again: the next", ({ store }) => pickBrightest(store)],
  i: ["next picture of the prompt, where there are several", ({ store }) => movePicture(store, 1)],
  I: ["previous picture", ({ store }) => movePicture(store, -1)],
  "+": ["zoom in", (_, parts) => parts.zoomBy(1.5)],
  "-": ["zoom out", (_, parts) => parts.zoomBy(1 / 1.5)],
  Escape: [
    "clear the picked patch and the range",
    ({ store }) => store.set({ patch: null, range: null, playing: false }),
  ],
  l: ["copy a link to this view", (_, parts) => parts.copy()],
  "?": ["this list", (_, parts) => parts.help()],
};

const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "Space", Escape: "Esc" };
export const keyName = (key) => NAMES[key] ?? key;

function jump(store, step) {
  if (step !== null) store.goTo(step);
}

function follow(store) {
  const on = !store.state.follow;
  store.set({ follow: on });
  if (!on) return;
  store.set({ playing: false });
  store.show(Math.max(store.steps - 1, 0));
}

export function listenForKeys(element, session, parts, signal) {
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key] || !isOurs(element, event)) return;
    event.preventDefault();
    KEYS[event.key][1](session, parts, event);
  };
  document.addEventListener("keydown", onKey, { signal });
}

/** Whether a key press is meant for the Scope: it is in sight, and nobody types or works another control. */
function isOurs(element, event) {
  if (!element.isConnected || !element.offsetParent || event.target.closest("dialog")) return false;
  const { target } = event;
  if (target !== document.body && !element.contains(target)) return false;
  if (target.matches("select, textarea, input:not([type=range])") || target.isContentEditable) return false;
  const isButton = target.closest("button, a, summary, [role=slider]");
  if (isButton && (event.key === " " || event.key === "Enter")) return false;
  if (target.closest("[role=slider], .scope-opacity") && /^(Arrow|Home|End)/.test(event.key)) return false;
  // Native arrows of the step slider mean one step too; taking them here keeps Shift + arrow at ten.
  return true;
}
