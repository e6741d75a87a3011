/**
 * A link that only the keyboard comes to, before everything else: past the form, to where the Scope begins.
 */

import { make } from "./dom.js";

/** @param {HTMLElement} element the Scope */
export function mountSkip(element, signal) {
  const go = (event) => {
    event.preventDefault();
    const begin = element.querySelector(".scope-welcome:not([hidden]) button");
    (begin ?? element.querySelector(".scope-range")).focus();
  };
  const link = make("a", { href: "#", class: "skip-link", onclick: go }, "Skip to the Scope");
  document.body.prepend(link);
  signal.addEventListener("abort", () => link.remove());
}
