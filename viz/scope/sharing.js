/**
 * Copy a link to exactly this view. The link carries the keys of its runs, so that a colleague can open it.
 */

import { toFragment } from "./address.js";
import { make } from "./dom.js";

const SHARED = "copied; whoever has it and reaches this server can see these runs";

export function mountSharing(element, session, parts) {
  const field = make("input", {
    type: "text",
    readonly: true,
    class: "scope-link",
    "aria-label": "link to this view",
  });
  const said = make("span", { class: "scope-copied", role: "status" });
  const box = make("div", { class: "scope-sharing", hidden: true }, field, said);
  parts.copy = async () => {
    try {
      const link = await linkOf(session);
      box.hidden = false;
      field.value = link;
      said.textContent = (await copied(link, field)) ? SHARED : "press Ctrl+C to copy";
    } catch (error) {
      session.fail(error); // the server is asked for the keys of the runs
    }
  };
  const button = (text, title, onclick) =>
    make("button", { type: "button", class: "scope-chip-button", title, onclick }, text);
  const copy = button("Copy link", "copy a link to this view (l)", () => parts.copy());
  const help = button("?", "all keys (?)", () => parts.help());
  help.setAttribute("aria-label", "all keys");
  element.querySelector(".scope-bar").append(make("div", { class: "scope-group scope-end" }, copy, help));
  element.append(box);
  session.store.add({ keys: ["a", "b"], draw: () => (box.hidden = true) });
}

async function linkOf({ store, client }) {
  const keys = new Map();
  for (const which of ["a", "b"]) {
    const id = store.state[which];
    if (!id) continue;
    const key = client.keys.get(id) ?? (await client.summary(id)).key;
    if (key) keys.set(id, key);
  }
  return location.origin + location.pathname + location.search + toFragment(store.state, keys);
}

/**
 * Plain http hosts have no clipboard for scripts; the old command still works there with a selected field.
 */
async function copied(text, field) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    field.select();
    return document.execCommand("copy");
  }
}
