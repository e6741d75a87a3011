/** The other way round: for a picked patch, how long each layer kept it, and which words used it. */

import { make, termLink } from "../dom.js";
import { keepers, keeperText } from "../images/pieces.js";
import { patchName, percent, short, tokenText } from "../words.js";

const WORDS = 6;

export class PatchFacts {
  constructor(store, which) {
    Object.assign(this, { store, which, key: "" });
    this.facts = make("p", {});
    this.layers = make("ul", {
      class: "scope-patch-layers",
      "aria-label": "share of steps at which each layer kept it",
    });
    this.words = make("div", { class: "scope-patch-words" });
    const head = make("div", { class: "scope-inspected-head" }, termLink("patch"));
    const kept = make("p", { class: "scope-hint" }, "By layer, the share of steps at which it was kept:");
    const used = make("p", { class: "scope-hint" }, "Used most by:");
    this.element = make(
      "div",
      { class: "scope-patch-facts" },
      head,
      this.facts,
      kept,
      this.layers,
      used,
      this.words,
    );
    this.words.addEventListener("click", (event) => {
      const step = event.target.closest("[data-step]")?.dataset.step;
      if (step) store.goTo(Number(step));
    });
  }

  draw(run, step) {
    const { patch } = this.store.state;
    this.element.hidden = patch === null || patch >= run.patches; // the other run may be of another picture
    if (this.element.hidden) return;
    const now = keepers(run, step, run.patchPosition[patch]);
    const where = now.length ? `kept now in ${now.map(keeperText).join(", ")}` : "evicted now in every layer";
    const key = `${run.id} ${patch} ${run.steps}`;
    if (key !== this.key) this.history(run, patch);
    this.key = key;
    this.facts.textContent = `${patchName(run, patch).replace("p", "P")}: ${where}; kept in ${percent(this.share)} of layer-steps${this.last}.`;
  }

  /** What does not depend on the current step: the share over all steps, by layer too, and the words. */
  history(run, patch) {
    const rows = rowsThatKeep(run, run.patchPosition[patch]);
    const shares = run.managedLayers.map(() => 0);
    const decodeSteps = Math.max(run.steps - 1, 1);
    let last = -1;
    for (let step = 1; step < run.steps; step += 1) {
      run.managedLayers.forEach((layer, at) => {
        const row = run.rows.selected_row.at(step, layer);
        const share = row < 0 ? 1 : rows[row];
        shares[at] += share / decodeSteps;
        if (share) last = step;
      });
    }
    this.share = shares.reduce((sum, share) => sum + share, 0) / Math.max(shares.length, 1);
    this.last = last > 0 && last < run.steps - 1 ? `, last at step ${last}` : "";
    this.layers.replaceChildren(...run.managedLayers.map((layer, at) => layerBar(layer, shares[at])));
    this.words.replaceChildren(
      ...mostUsing(run, patch).map(({ step, value }) => wordButton(run, step, value)),
    );
  }
}

/** A layer with its share as a bar. */
function layerBar(layer, share) {
  const bar = make("i", { "aria-hidden": "true" });
  bar.style.setProperty("--share", share.toFixed(4));
  return make(
    "li",
    { title: "mean over its KV heads" },
    make("span", {}, `layer ${layer}`),
    bar,
    make("span", {}, percent(share)),
  );
}

/** Per distinct selection, the share of its KV heads that hold a prefix entry. */
function rowsThatKeep(run, index) {
  const shares = new Float32Array(run.selections.count);
  const width = run.meta.select;
  for (let row = 0; row < shares.length; row += 1) {
    const entries = run.selections.row(row);
    for (let slot = 0; slot < entries.length; slot += 1)
      if (entries[slot] === index) shares[row] += 1 / run.heads;
  }
  return width ? shares : shares.fill(0);
}

/** The steps whose attention on a patch, averaged over layers, is largest. */
function mostUsing(run, patch, most = WORDS) {
  const used = [];
  for (let step = 1; step < run.steps; step += 1) {
    used.push({ step, value: (run.rows.map_mean.at(step, patch) / 255) * run.rows.map_mean_scale.at(step) });
  }
  return used
    .sort((left, right) => right.value - left.value)
    .filter(({ value }) => value > 0)
    .slice(0, most);
}

function wordButton(run, step, value) {
  const title = `step ${step}: attention ${short(value)}`;
  return make(
    "button",
    { type: "button", class: "scope-word-button", "data-step": step, title },
    tokenText(run, step).trim() || "·",
  );
}
