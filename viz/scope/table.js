/** The table twin of the timelines: a row a step, for the chosen layer, made when it is opened. */

import { make, termLink } from "./dom.js";
import { exchangedIn } from "./exchanged.js";
import { percent, short, tokenText } from "./words.js";

/** What the columns are called, and the terms that they lead to. */
const HEADS = [
  ["step", "step"],
  ["token"],
  ["drift", "drift"],
  ["tau", "tau"],
  ["refreshed", "refresh"],
  ["entries exchanged", "just in, just out"],
  ["layers refreshed", "refresh rate"],
  ["which layers", "layer"],
];

export function mountTable(element, store) {
  for (const which of ["a", "b"]) {
    const body = make("tbody", {});
    const head = make(
      "tr",
      {},
      ...HEADS.map(([text, term]) => make("th", { scope: "col" }, term ? termLink(text, term) : text)),
    );
    const table = make("table", { class: "scope-table" }, make("thead", {}, head), body);
    const details = make(
      "details",
      {},
      make("summary", {}, `Table of run ${which.toUpperCase()}`),
      make("div", { class: "scope-table-box" }, table),
    );
    element.append(details);
    const draw = () => details.open && fill(body, store.runs[which], store);
    details.addEventListener("toggle", draw);
    body.addEventListener("click", (event) => {
      const row = event.target.closest("[data-step]");
      if (row) store.goTo(Number(row.dataset.step));
    });
    store.add({ keys: ["layer", which === "a" ? "runA" : "runB", which], draw });
  }
}

function fill(body, run, store) {
  const { layer } = store.state;
  const rows = [];
  for (let step = 0; step < (run?.steps ?? 0); step += 1) {
    const layers = run.deciding(step, layer);
    const exchanged = layers.reduce((sum, one) => sum + exchangedIn(run, step, one), 0);
    const fired = layers.filter((one) => run.fired(step, one));
    const decided = layers.length > 0;
    const tau = run.meanTau(step, layer);
    const cells = [
      make("button", { type: "button", "data-step": step }, String(step)),
      tokenText(run, step),
      decided ? short(run.meanDrift(step, layer)) : "",
      tau ? short(tau) : "",
      decided ? (layer === "mean" ? `${fired.length} of ${layers.length}` : fired.length ? "yes" : "no") : "",
      String(exchanged),
      percent(run.refreshShare(step)),
      run
        .deciding(step)
        .filter((one) => run.fired(step, one))
        .join(", "),
    ];
    rows.push(make("tr", { "data-step": step }, ...cells.map((cell) => make("td", {}, cell))));
  }
  body.replaceChildren(...rows);
}
