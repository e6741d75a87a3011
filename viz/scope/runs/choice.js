/** The bar of the chosen pair, and the way to the Scope. */

import { badge, make } from "../dom.js";
import { title } from "./columns.js";

/**
 * @param {HTMLElement} element
 * @param {import("./desk.js").Desk} desk
 */
export function mountChoice(element, desk) {
  const names = { a: make("span", { class: "runs-chosen" }), b: make("span", { class: "runs-chosen" }) };
  const none = make("button", { type: "button", class: "runs-action", title: "show A alone" }, "no B");
  const show = make("button", { type: "button", class: "runs-button runs-main" });
  const hint = make("span", { class: "scope-hint", role: "status" });
  element.append(
    make("span", { class: "runs-side" }, badge("a"), names.a),
    make("span", { class: "runs-side" }, badge("b"), names.b, none),
    hint,
    show,
  );
  none.addEventListener("click", () => desk.choose("b", null));
  show.addEventListener("click", () => desk.show());
  desk.add(() => {
    for (const which of ["a", "b"]) {
      const run = desk.list.get(desk.choice[which]);
      names[which].textContent = run ? title(run) : desk.choice[which] ? "…" : "none chosen";
      names[which].classList.toggle("runs-missing", !run);
    }
    none.hidden = !desk.choice.b;
    show.disabled = !desk.choice.a;
    show.textContent = desk.choice.b ? "Show A and B in the Scope" : "Show A in the Scope";
    hint.textContent = hintFor(desk);
  });
}

function hintFor({ choice, list }) {
  if (!choice.a) return "choose a run as A";
  const [a, b] = [list.get(choice.a), list.get(choice.b)];
  if (a && a === b) return "A and B are the same run";
  const apart = a?.subject && b?.subject && a.subject !== b.subject;
  return apart ? "A and B differ in picture, prompt or length: their words are hard to compare" : "";
}
