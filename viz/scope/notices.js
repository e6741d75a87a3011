/** Messages as cards, one below the other; each stays until a person dismisses it. */

import { make } from "./dom.js";

/** @typedef {{text: string, hint: string, kind?: "error"|"info"}} Notice */

export class NoticeCards {
  /**
   * @param {HTMLElement} element that holds the cards
   * @param {function(Notice): void} dismiss
   */
  constructor(element, dismiss) {
    this.element = element;
    this.dismiss = dismiss;
    this.shown = new Map();
  }

  /** @param {Notice[]} notices all that there are now */
  show(notices) {
    for (const notice of notices) {
      if (this.shown.has(notice)) continue;
      const card = cardOf(notice, () => this.dismiss(notice));
      this.shown.set(notice, card);
      this.element.append(card);
    }
    for (const [notice, card] of this.shown) {
      if (notices.includes(notice)) continue;
      card.remove();
      this.shown.delete(notice);
    }
  }
}

function cardOf({ text, hint, kind = "error" }, onclick) {
  return make(
    "div",
    { class: `scope-notice scope-notice-${kind}`, role: "alert" },
    make("span", {}, text),
    make("span", { class: "scope-notice-hint" }, hint ?? ""),
    make("button", { type: "button", onclick }, "Dismiss"),
  );
}
