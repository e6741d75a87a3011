/**
 * The kept entries of a layer as chips, one row a KV head: what is new is marked; a chip leads to its patch.
 */

import { make, termLink } from "../dom.js";
import { pickPatch } from "../travel.js";
import { patchName } from "../words.js";

const MOST_HEADS = 4; // rows; a person picks one KV head for more

export class Slots {
  constructor(store, which) {
    Object.assign(this, { store, which });
    this.element = make("div", { class: "scope-slots" });
    this.element.addEventListener("click", (event) => this.pick(event));
    this.element.addEventListener("pointerover", (event) => this.hover(event));
    this.element.addEventListener("pointerleave", () => store.set({ hoverPatch: null }));
    this.rows = [];
    this.more = make("p", { class: "scope-hint" });
    this.element.append(
      make("div", { class: "scope-inspected-head" }, termLink("selected entries")),
      this.more,
    );
  }

  patchOf(event) {
    const text = event.target.closest("[data-patch]")?.dataset.patch;
    return text === undefined || text === "-1" ? null : Number(text);
  }

  pick(event) {
    const patch = this.patchOf(event);
    if (patch !== null) pickPatch(this.store, this.store.runs[this.which], patch);
  }

  hover(event) {
    this.store.set({ hoverPatch: this.patchOf(event) });
  }

  draw(run, step) {
    const { layer, head } = this.store.state;
    const heads =
      head === "mean" ? Array.from({ length: Math.min(run.heads, MOST_HEADS) }, (_, index) => index) : [head];
    const shown = layer !== "mean" && run.rows.selected_row.at(step, layer) >= 0;
    this.element.hidden = !shown;
    if (!shown) return;
    while (this.rows.length < heads.length) this.addRow();
    this.rows.forEach((row, index) => {
      row.element.hidden = index >= heads.length;
      if (index < heads.length) this.fill(row, run, step, layer, heads[index]);
    });
    const hidden = head === "mean" ? run.heads - heads.length : 0;
    this.more.hidden = hidden === 0;
    this.more.textContent = `${hidden} more KV head${hidden === 1 ? "" : "s"}: pick one with [ ]`;
  }

  addRow() {
    const name = make("span", { class: "scope-slots-name" });
    const chips = make("span", { class: "scope-chips" });
    const element = make("div", { class: "scope-slots-row" }, name, chips);
    this.more.before(element);
    this.rows.push({ element, name, chips });
  }

  fill({ name, chips }, run, step, layer, head) {
    const now = run.selection(step, layer, head);
    const before = step > 0 ? run.selection(step - 1, layer, head) : null;
    const old = new Set(before ?? now);
    const kept = new Set(now);
    const exchanged = before ? [...before].filter((index) => !kept.has(index)).length : 0;
    name.textContent = `KV head ${head}${exchanged ? `: ${exchanged} of ${now.length} exchanged` : ""}`;
    while (chips.childElementCount < now.length) chips.append(make("i", { class: "scope-chip" }));
    while (chips.childElementCount > now.length) chips.lastChild.remove();
    const sorted = Array.from(now).sort((left, right) => left - right);
    sorted.forEach((index, slot) => this.label(chips.children[slot], run, index, !old.has(index)));
  }

  label(chip, run, index, fresh) {
    const patch = run.patchOf[index];
    const kind = patch >= 0 ? patchName(run, patch) : "text";
    const key = `${run.id} ${index} ${fresh}`;
    if (chip.dataset.key === key) return;
    chip.dataset.key = key;
    chip.dataset.patch = patch;
    chip.className = `scope-chip${fresh ? " scope-chip-in" : ""}${patch < 0 ? " scope-chip-text" : ""}`;
    chip.title = `prefix entry ${index}: ${kind}${patch < 0 ? ` “${pieceAt(run, index)}”` : ""}${fresh ? ", just in" : ""}`;
  }
}

/** The prompt's text at a prompt index. */
function pieceAt(run, index) {
  const piece = run.meta.prompt_pieces.find(({ start, count }) => start <= index && index < start + count);
  return piece ? piece.text.trim() : "";
}
