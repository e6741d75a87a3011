/** The studies that can be shown: those for everyone, and one's own. */

import { isRunning } from "./desk.js";
import { make } from "../dom.js";

/**
 * @param {HTMLElement} element
 * @param {import("./desk.js").StudyDesk} desk
 */
export function mountList(element, desk) {
  const list = make("ul", { class: "study-names" });
  const status = make("p", { class: "scope-hint", role: "status" });
  element.append(make("h2", { class: "study-rail-head" }, "Studies"), list, status);
  const items = new Map();
  desk.add(() => {
    const { studies, error, choices } = desk;
    for (const [id, item] of items) {
      if (studies.some((study) => study.id === id)) continue;
      item.element.remove();
      items.delete(id);
    }
    studies.forEach((study, at) => {
      if (!items.has(study.id)) items.set(study.id, new Item(study.id, desk));
      const item = items.get(study.id);
      item.update(study, study.id === desk.shown);
      if (list.children[at] !== item.element) list.insertBefore(item.element, list.children[at] ?? null);
    });
    status.textContent = error
      ? `${error.message}. What is shown may be out of date.`
      : !choices
        ? "asking the server for its studies"
        : studies.length
          ? ""
          : "None yet. Start one below.";
  });
}

class Item {
  constructor(id, desk) {
    this.name = make("span", { class: "study-name" });
    this.state = make("span", { class: "study-state" });
    const onclick = () => desk.choose(id);
    this.button = make("button", { type: "button", class: "study-pick", onclick }, this.name, this.state);
    this.element = make("li", {}, this.button);
  }

  update(study, shown) {
    say(this.name, study.label);
    say(this.state, stateText(study));
    this.state.classList.toggle("scope-live", isRunning(study));
    if (shown) this.button.setAttribute("aria-current", "true");
    else this.button.removeAttribute("aria-current");
  }
}

function stateText(study) {
  if (study.public) return `for everyone, ${study.done} runs`;
  const time = new Date(study.created * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const of = `${study.done} of ${study.total}`;
  const words = { waiting: "waiting", running: of, done: `${study.done} runs`, stopped: `stopped, ${of}` };
  return `yours, ${time}, ${words[study.status] ?? study.status}`;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
