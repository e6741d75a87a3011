/** Opening a file: by the button, or dropped anywhere on the tab. */

import { make } from "../dom.js";
import { sizeText } from "./columns.js";

/**
 * @param {HTMLElement} element
 * @param {import("./desk.js").Desk} desk
 */
export function mountOpening(element, desk) {
  const input = make("input", { type: "file", accept: ".rcr", multiple: true, hidden: true });
  const button = make("button", { type: "button", class: "runs-button" }, "Open a .rcr file");
  const hint = make("span", { class: "scope-hint" }, "or drop it here. It is held for this browser alone.");
  const text = make("span", { role: "status" });
  const progress = make("progress", { "aria-label": "opening the file" });
  const busy = make("div", { class: "runs-busy", hidden: true }, progress, text);
  element.append(button, hint, input, busy);
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    desk.openFiles([...input.files]);
    input.value = "";
  });
  desk.add(() => {
    const file = desk.arriving;
    busy.hidden = !file;
    hint.hidden = Boolean(file);
    button.disabled = Boolean(file);
    text.textContent = file ? `opening ${file.name}, ${sizeText(file.size)}` : "";
  });
}

/** Files may be dropped anywhere on the tab; the zone shows that they would be taken. */
export function takeDrops(element, zone, desk, signal) {
  const carries = (event) => event.dataTransfer?.types.includes("Files");
  const over = (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = desk.arriving ? "none" : "copy";
    zone.classList.add("runs-over");
  };
  const leave = (event) => !element.contains(event.relatedTarget) && zone.classList.remove("runs-over");
  const drop = (event) => {
    zone.classList.remove("runs-over");
    if (!carries(event)) return;
    event.preventDefault();
    if (!desk.arriving) desk.openFiles([...event.dataTransfer.files]);
  };
  element.addEventListener("dragover", over, { signal });
  element.addEventListener("dragleave", leave, { signal });
  element.addEventListener("drop", drop, { signal });
}
