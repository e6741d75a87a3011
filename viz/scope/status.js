/** The status line: the connection, the runs, and messages that stay until a person dismisses them. */

import { make } from "./dom.js";
import { NoticeCards } from "./notices.js";
import { valueText } from "./transport.js";
import { policyTitle, statusText } from "./words.js";

// ms: a screen reader is told where the step has come to rest, not each one on the way
const SPEAK_EVERY = 600;

export function mountStatus(element, session) {
  const { store, client } = session;
  const line = make("div", { class: "scope-status-line" });
  const notices = make("div", {});
  const cards = new NoticeCards(notices, (notice) => session.dismiss(notice));
  const spoken = make("div", { class: "scope-spoken", "aria-live": "polite" });
  element.append(notices, line, spoken);
  const draw = () => {
    cards.show(session.notices);
    line.textContent = summaryLine(store, client);
    line.classList.toggle("scope-lost", !client.connected);
  };
  store.add({ keys: ["notice", "connection", "runA", "runB", "a", "b"], draw });
  let timer = 0;
  store.add({
    keys: ["step", "layer"],
    draw: () => {
      clearTimeout(timer);
      timer = setTimeout(() => (spoken.textContent = valueText(store)), SPEAK_EVERY);
    },
  });
}

function summaryLine(store, client) {
  if (!client.connected) return "connection lost: trying again; the runs go on meanwhile";
  const runs = Object.entries(store.runs).filter(([, run]) => run);
  if (!runs.length) return "no run is open";
  const facts = runs.map(
    ([which, run]) => `${`${which.toUpperCase()} ${policyTitle(run.policy)}`.trim()}: ${statusText(run)}`,
  );
  const meta = runs.find(([, run]) => run.meta)?.[1].meta;
  if (meta)
    facts.push(`${meta.model} on ${meta.device || "an unknown device"}, ${meta.dtype}`, ...keptTexts(runs));
  return facts.join("  ·  ");
}

/** What the runs keep of the prefix: said once where A and B keep the same. */
function keptTexts(runs) {
  const evicting = runs.filter(([, { meta, policy }]) => meta && policy !== "full");
  const kept = ([, { meta }]) => `${meta.select} of ${meta.prefix_length} prefix entries kept per KV head`;
  if (new Set(evicting.map(kept)).size < 2) return evicting.slice(0, 1).map(kept);
  return evicting.map((entry) => `${entry[0].toUpperCase()}: ${kept(entry)}`);
}
