/** The list of keys, as a dialog. */

import { make } from "./dom.js";
import { KEYS, keyName } from "./keys.js";

export function mountHelp(element) {
  const rows = Object.entries(KEYS).map(([key, [text]]) =>
    make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, keyName(key))), make("td", {}, text)),
  );
  const close = make("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const body = make("table", {}, make("tbody", {}, ...rows));
  const dialog = make(
    "dialog",
    { class: "scope-help", "aria-label": "keys" },
    make("h2", {}, "Keys"),
    body,
    close,
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  element.append(dialog);
  return () => dialog.showModal();
}
