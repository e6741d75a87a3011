/** `window.rcrPage`: what the page's own controls (the form beside the Scope) call. */

import { showRoom } from "./rooms.js";

export function buildBridge(session, parts) {
  const bridge = {
    /** Whose runs these are; goes with every start. */
    owner: session.client.owner,
    /** Show the Scope and start the tour there. */
    tour() {
      showRoom("Scope");
      parts.tour();
    },
    /** @param {string} text the form's answer: ids of the runs, or what is wrong */
    opened(text) {
      const answer = JSON.parse(text);
      if (answer.error) {
        session.say(answer.error, answer.hint);
        return;
      }
      session.openPair(answer.a, answer.b ?? null);
      // so that the keys of the Scope act; Tab goes on from there
      document.querySelector("#run:focus")?.blur();
    },
  };
  Object.defineProperty(window, "rcrPage", { value: Object.freeze(bridge), configurable: true });
}
