/** The inspector: why, the kept entries, the next tokens and the picked patch, for A and for B. */

import { badge, make } from "../dom.js";
import { policyTitle } from "../words.js";
import { explain } from "./explanation.js";
import { NextTokens } from "./next.js";
import { PatchFacts } from "./patch.js";
import { Slots } from "./slots.js";

export function mountInspector(element, store) {
  for (const which of ["a", "b"]) new Column(element, store, which);
}

class Column {
  constructor(parent, store, which) {
    Object.assign(this, { store, which });
    this.name = make("span", {});
    this.why = make("p", { class: "scope-why" });
    this.slots = new Slots(store, which);
    this.next = new NextTokens();
    this.patch = new PatchFacts(store, which);
    this.hint = make(
      "p",
      { class: "scope-hint" },
      "Pick a layer (↑ ↓) to see its entries, a patch to see its life.",
    );
    const head = make("h3", {}, badge(which), this.name);
    this.element = make(
      "section",
      { class: "scope-inspected" },
      head,
      this.why,
      this.slots.element,
      this.patch.element,
      this.hint,
      this.next.element,
    );
    parent.append(this.element);
    const signal = which === "a" ? "runA" : "runB";
    store.add({ keys: ["step", "layer", "head", "patch", signal, which], draw: () => this.draw() });
  }

  draw() {
    const { store, which } = this;
    const run = store.runs[which];
    this.element.hidden = !run?.steps;
    if (!run?.steps) return;
    const step = store.stepOf(run);
    const { layer, patch } = store.state;
    this.name.textContent = `${policyTitle(run.policy)}, step ${step}${layer === "mean" ? "" : `, layer ${layer}`}`;
    this.why.textContent = explain(run, step, layer);
    this.hint.hidden = layer !== "mean" || patch !== null;
    this.slots.draw(run, step);
    this.patch.draw(run, step);
    this.next.draw(run, step);
  }
}
