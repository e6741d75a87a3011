/** A few words beside the pointer. */

import { make } from "../dom.js";

const DISTANCE = 14; // CSS pixels from the pointer

export class Tooltip {
  constructor(parent) {
    this.parent = parent;
    this.element = make("div", { class: "timelines-tooltip", "aria-hidden": "true", hidden: true });
    parent.append(this.element);
  }

  /** @param {?string} text @param {PointerEvent} event */
  show(text, event) {
    const { element, parent } = this;
    element.hidden = !text;
    if (!text) return;
    if (element.textContent !== text) element.textContent = text;
    const box = parent.getBoundingClientRect();
    const right = box.width - element.offsetWidth;
    const x = Math.min(Math.max(event.clientX - box.left + DISTANCE, 0), Math.max(right, 0));
    const below = event.clientY - box.top + DISTANCE;
    const fits = below + element.offsetHeight <= box.height;
    const y = fits ? below : event.clientY - box.top - DISTANCE - element.offsetHeight;
    element.style.transform = `translate(${x}px, ${y}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}
