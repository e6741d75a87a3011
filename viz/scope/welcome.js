/** What an empty Scope says: how to begin, and finished runs that open with one click. */

import { make } from "./dom.js";
import { examplePairs, openExample } from "./examples.js";
import { policyTitle } from "./words.js";

/** @param {HTMLElement} root the Scope, whose views an empty page leaves out */
export function mountWelcome(element, session, root, parts) {
  const { store } = session;
  const examples = make("div", { class: "scope-examples" });
  const title = make("h2", {}, "Watch a compressed KV cache read an image");
  const begin = make(
    "p",
    {},
    "Choose a scene or drop a picture, then press Run: two policies describe it side by side, and every step shows what they kept, what they dropped, and why. Or begin with a finished pair:",
  );
  const tour = make(
    "button",
    { type: "button", class: "scope-tour-start", onclick: () => parts.tour() },
    "Take the 60-second tour",
  );
  const box = make(
    "section",
    { class: "scope-welcome", "aria-label": "how to begin" },
    title,
    begin,
    examples,
    tour,
  );
  element.append(box);
  let asked = false;
  const draw = async ({ a, b }) => {
    box.hidden = Boolean(a || b);
    root.classList.toggle("scope-empty", !box.hidden);
    if (box.hidden || asked) return;
    asked = true;
    try {
      examples.replaceChildren(
        ...(await examplePairs(session.client)).map((pair) => button(session, pair, root)),
      );
    } catch (error) {
      asked = false;
      session.fail(error);
    }
  };
  store.add({ keys: ["a", "b", "connection"], draw });
}

function button(session, pair, root) {
  const { a, b, name } = pair;
  const picture = make("img", { alt: "" });
  picture.addEventListener("load", () => URL.revokeObjectURL(picture.src));
  session.client.picture(a.id).then(
    (address) => (picture.src = address),
    () => picture.remove(),
  );
  const open = async () => {
    await openExample(session, pair);
    await new Promise(requestAnimationFrame); // nothing can be focused before it is drawn
    root.querySelector(".scope-range").focus({ preventScroll: true }); // this button is hidden by now
  };
  const text = `${name}: ${policyTitle(a.policy)} | ${policyTitle(b.policy)}`;
  return make("button", { type: "button", onclick: open }, picture, text);
}
