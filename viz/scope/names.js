/**
 * What the page's own controls lack: names of the scenes' thumbnails, and links from settings to their terms.
 */

import { termLink } from "./dom.js";

const TRIES = 40; // the form is drawn after the Scope
const EVERY = 100; // ms

/** setting -> term of the glossary */
const TERMS = {
  select: "select",
  window: "window",
  tau0: "tau0",
  rho: "rho",
  gain: "gain",
  rank: "sketch rank",
  candidates: "candidates",
  defer: "deferred refresh",
  merge: "masked merge",
  offload: "offloading",
};

/** Complete the form, now and whenever a part of it is drawn: a closed accordion is empty. */
export function completeForm(signal, tries = TRIES) {
  const rail = document.querySelector("#rail");
  if (!rail) {
    if (tries && !signal.aborted) setTimeout(() => completeForm(signal, tries - 1), EVERY);
    return;
  }
  const complete = () => (nameScenes(rail), linkSettings(rail));
  const observer = new MutationObserver(complete);
  observer.observe(rail, { childList: true, subtree: true });
  signal.addEventListener("abort", () => observer.disconnect());
  complete();
}

function nameScenes(rail) {
  for (const item of rail.querySelectorAll("#scenes .gallery-item:not([aria-label])")) {
    const file = item.querySelector("img")?.src.split("/").at(-1);
    if (file)
      item.setAttribute("aria-label", `scene: ${file.replace(/^\d+-|\.\w+$/g, "").replace(/-/g, " ")}`);
  }
}

/** Beside the setting, not in its label: the label is the name of the field. */
function linkSettings(rail) {
  for (const [setting, term] of Object.entries(TERMS)) {
    const control = rail.querySelector(`#set-${setting}:not(:has(.rail-term))`);
    if (!control) continue;
    const link = termLink("?", term);
    link.className = "rail-term";
    link.setAttribute("aria-label", `what ${setting} means`);
    control.append(link);
  }
}
