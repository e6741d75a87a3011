/**
 * The prompt under an image pane: its text tokens as cells that look as the patches do, its pictures as one
 * cell each, so that every kept entry has a place. One stop of the Tab key; arrows go from cell to cell.
 */

import { make, termLink } from "../dom.js";
import { visible } from "../words.js";
import { KeptPieces, keepers, keeperText, piecesOf } from "./pieces.js";
import { KEPT, strengthOf } from "./painting.js";

const MOST_LAYERS = 6; // that a sentence names
const FEW = 256; // cells that are cheap to look after
const EDGE = 6; // CSS pixels of a strip above and below its cells
const MOVES = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

export class PromptStrip {
  /** @param {"a"|"b"} which */
  constructor(store, which) {
    Object.assign(this, { store, which, run: null, cells: [], looks: [], active: null, hovered: null });
    this.told = make("span", { class: "scope-prompt-told" });
    this.list = make("div", {
      class: "scope-prompt-cells",
      role: "listbox",
      tabindex: 0,
      "aria-label": `prompt of run ${which.toUpperCase()}, entry by entry`,
    });
    const head = make("div", { class: "scope-prompt-head" }, termLink("prompt"), this.told);
    this.element = make("div", { class: "scope-prompt", hidden: true }, head, this.list);
    this.listen();
  }

  listen() {
    const { list } = this;
    const cellOf = (event) => event.target.closest?.("[data-piece]");
    list.addEventListener("pointerover", (event) => this.hover(cellOf(event)));
    list.addEventListener("pointerleave", () => this.hover(null));
    list.addEventListener("click", (event) => this.press(cellOf(event)));
    list.addEventListener("focus", () => this.activate(this.active ?? 0));
    list.addEventListener("blur", () => this.activate(null));
    list.addEventListener("keydown", (event) => this.move(event));
    const moved = () => {
      this.span = null;
      if (this.kept && !this.element.hidden) this.dressInSight();
    };
    list.addEventListener("scroll", moved, { passive: true });
    new ResizeObserver(moved).observe(list);
  }

  hover(cell) {
    this.hovered = cell ? Number(cell.dataset.piece) : null;
    this.tell();
  }

  press(cell) {
    if (!cell) return;
    this.activate(Number(cell.dataset.piece));
    this.openPicture();
  }

  /** The picture that the active cell stands for is drawn in the panes. */
  openPicture() {
    const piece = this.pieces[this.active];
    if (piece?.kind === "image")
      this.store.set({ picture: this.run.shots.of[this.run.patchOf[piece.start]] });
  }

  move(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.active === null) return;
    if (event.key === "Enter") this.openPicture();
    else if (event.key in MOVES) this.activate(this.active + MOVES[event.key]);
    else return; // the other keys are the Scope's
    event.preventDefault();
    event.stopPropagation();
  }

  activate(index) {
    this.cells[this.active]?.setAttribute("aria-selected", false);
    this.active = index === null ? null : Math.min(Math.max(index, 0), this.cells.length - 1);
    const cell = this.cells[this.active];
    cell?.setAttribute("aria-selected", true);
    if (cell) this.list.setAttribute("aria-activedescendant", cell.id);
    else this.list.removeAttribute("aria-activedescendant");
    if (cell) reveal(this.list, cell);
    this.tell();
  }

  takeRun(run) {
    if (run === this.run) return;
    this.run = run;
    this.pieces = piecesOf(run);
    this.kept = new KeptPieces(run, this.pieces);
    this.cells = this.pieces.map((piece, index) => this.cellOf(piece, index));
    this.looks = this.pieces.map(() => "");
    this.span = null;
    const parts = [...this.cells];
    const first = this.pieces.findIndex(({ fixed }) => fixed);
    if (first >= 0) parts.splice(first, 0, make("span", { class: "scope-prompt-window" }, "window"));
    this.list.replaceChildren(...parts);
    this.activate(null);
  }

  cellOf(piece, index) {
    const isImage = piece.kind === "image";
    const text = isImage ? this.pictureText(piece) : shown(piece.text);
    const id = `scope-prompt-${this.which}-${index}`;
    return make(
      "span",
      { id, role: "option", "aria-selected": "false", "data-piece": index, class: "scope-token" },
      text,
    );
  }

  pictureText({ start, count }) {
    const { run } = this;
    const shot = run.shots.several ? ` ${run.shots.list[run.shots.of[run.patchOf[start]]].image + 1}` : "";
    return `image${shot}, ${count} token${count === 1 ? "" : "s"}`;
  }

  /** @param {boolean} evicts whether the shown layers evict anything at this step */
  draw(run, step, evicts) {
    this.element.hidden = !run.meta.prompt_pieces.length;
    if (this.element.hidden) return;
    this.takeRun(run);
    Object.assign(this, { step, evicts });
    if (evicts) this.kept.update(step, this.store.state);
    this.dressInSight();
    this.tell();
  }

  /** Of a long prompt, cells far from those in sight wait until they come near. */
  dressInSight() {
    this.span ??= spanInSight(this.list, this.cells);
    for (let index = this.span[0]; index < this.span[1]; index += 1) this.dress(index);
  }

  /** Touches the page only where the look of a cell changed. */
  dress(index) {
    const { now, before } = this.kept;
    const look = this.look(this.pieces[index], now[index], before[index]);
    if (look === this.looks[index]) return;
    this.looks[index] = look;
    this.cells[index].className = `scope-token scope-token-${look}`;
  }

  look({ kind, fixed }, now, before) {
    if (kind === "image") return "image";
    if (fixed) return "fixed";
    if (!this.evicts) return "whole";
    if (now > KEPT) return `${before > KEPT ? "kept" : "in"} scope-strength-${strengthOf(now)}`;
    return before > KEPT ? `out scope-strength-${strengthOf(before)}` : "evicted";
  }

  /** What is known of the entry under the pointer, or else of the active one. */
  tell() {
    const index = this.hovered ?? this.active;
    const piece = index === null ? null : this.pieces?.[index];
    const text = piece ? this.textOf(piece, index) : this.summary();
    if (text !== this.told.textContent) {
      this.told.textContent = text;
      this.told.title = piece ? text : "";
    }
    if (index !== null && index === this.active) this.cells[index].setAttribute("aria-label", text);
  }

  /** How many of the text entries are kept, by whoever. */
  summary() {
    if (!this.evicts || !this.pieces) return "";
    let [evictable, kept] = [0, 0];
    this.pieces.forEach(({ kind, fixed }, index) => {
      if (kind !== "text" || fixed) return;
      evictable += 1;
      if (this.kept.now[index] > KEPT) kept += 1;
    });
    return `${kept} of ${evictable} text entries kept`;
  }

  textOf(piece, index) {
    if (piece.kind === "image") return this.pictureText(piece);
    const entry =
      piece.count > 1 ? `entries ${piece.start} to ${piece.start + piece.count - 1}` : `entry ${piece.start}`;
    return `“${shown(piece.text)}”, ${entry}: ${this.stateText(piece, index)}`;
  }

  stateText({ start, fixed }, index) {
    if (fixed) return "in the window, always kept";
    if (!this.evicts) return "kept, as nothing is evicted here";
    const [is, was] = [this.kept.now[index] > KEPT, this.kept.before[index] > KEPT];
    if (!is) return was ? "just out" : "evicted";
    return `${was ? "" : "just in, "}kept ${this.whoKeeps(start)}`;
  }

  whoKeeps(entry) {
    const { run, step } = this;
    const { layer, head } = this.store.state;
    if (head !== "mean") return layer === "mean" ? `by KV head ${head} of some layers` : `by KV head ${head}`;
    const found = keepers(run, step, entry, run.chosenLayers(layer));
    const named = found.slice(0, MOST_LAYERS).map(keeperText).join(", ");
    const rest = found.length - MOST_LAYERS;
    return `in ${named}${rest > 0 ? ` and ${rest} more` : ""}`;
  }
}

/** The first cell near those in sight, and the one behind the last; all of a prompt that is not long. */
function spanInSight(list, cells) {
  if (cells.length <= FEW) return [0, cells.length];
  const { top, height } = list.getBoundingClientRect();
  const from = firstFrom(cells, (cell) => cell.getBoundingClientRect().bottom > top - 2 * height);
  const to = firstFrom(cells, (cell) => cell.getBoundingClientRect().top > top + 3 * height);
  return [from, to];
}

/** The index of the first cell that is so, as are all behind it. */
function firstFrom(cells, isSo) {
  let [low, high] = [0, cells.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(cells[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** In a cell the space before a word is left out. */
const shown = (text) => visible(text.trim() || text);

/** Bring a cell into sight within its strip alone: the page must not move. */
function reveal(list, cell) {
  const [frame, box] = [list.getBoundingClientRect(), cell.getBoundingClientRect()];
  if (box.top < frame.top + EDGE) list.scrollTop += box.top - frame.top - EDGE;
  else if (box.bottom > frame.bottom - EDGE) list.scrollTop += box.bottom - frame.bottom + EDGE;
}
