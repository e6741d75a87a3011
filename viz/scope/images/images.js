/** The image panes, their shared colour scale and its legend. */

import { fitted } from "../canvas.js";
import { make, termLink } from "../dom.js";
import { colour } from "../palette.js";
import { MAP_NAMES, short } from "../words.js";
import { coverage } from "./painting.js";
import { DifferencePane } from "./difference.js";
import { Filmstrip } from "./filmstrip.js";
import { Pane } from "./pane.js";
import { Scales } from "./scales.js";

const KEYS = [
  "step",
  "layer",
  "head",
  "patch",
  "picture",
  "map",
  "scale",
  "colours",
  "diff",
  "opacity",
  "zoom",
  "hoverPatch",
  "a",
  "b",
  "runA",
  "runB",
  "pages",
  "size",
  "theme",
];
const PREVIEW_AFTER = 60; // ms
const RAMP_GROUND = "#e9edf2"; // little values let the picture through; most pictures are no darker than this

export function mountImages(element, store) {
  const scales = new Scales(store);
  const row = make("div", { class: "scope-panes" });
  const preview = { step: null };
  const a = new Pane(row, store, "a", scales, preview);
  const b = new Pane(row, store, "b", scales, preview);
  const difference = new DifferencePane(row, store, a, b);
  const film = new Filmstrip(store, [a, b]);
  const legend = new Legend(store, [a, b]);
  element.append(film.element, row, legend.element);
  let last = -1;
  const draw = (state) => {
    row.classList.toggle("scope-three", state.diff);
    const shown = preview.step ?? state.step;
    wantPages(store, shown, shown - last);
    last = shown;
    a.draw();
    b.draw();
    difference.draw();
    film.draw();
    legend.draw();
  };
  store.add({ keys: KEYS, draw });
  store.add({ keys: ["hoverStep"], draw: previewing(preview, draw) });
  return { a, b, zoomBy: (factor) => a.zoomBy(factor) };
}

/** A step that the pointer rests on is shown, and let go again when the pointer leaves: nothing is pinned. */
function previewing(preview, draw) {
  let timer = 0;
  return (state) => {
    clearTimeout(timer);
    if (state.hoverStep === null && preview.step === null) return;
    const show = () => {
      preview.step = state.hoverStep;
      draw(state);
    };
    timer = setTimeout(show, PREVIEW_AFTER);
  };
}

/** Maps per layer come in pages: ask for those that the panes need. */
function wantPages(store, step, direction) {
  const { layer, map } = store.state;
  if (layer === "mean" && map === "attention") return;
  for (const which of ["a", "b"]) {
    const run = store.runs[which];
    if (run?.steps) store.pages[which].want(Math.min(step, run.steps - 1), direction);
  }
}

class Legend {
  constructor(store, panes) {
    Object.assign(this, { store, panes });
    this.ramp = make("canvas", { "aria-hidden": "true" });
    this.low = make("span", {}, "0");
    this.high = make("span", {});
    this.name = make("span", { class: "scope-legend-name" });
    const states = [
      ["kept", "kept", "selected entries"],
      ["in", "just in", "just in, just out"],
      ["out", "just out", "just in, just out"],
      ["evicted", "evicted", "evicted"],
    ].map(([kind, text, term]) =>
      make("span", { class: `scope-key scope-key-${kind}` }, make("i", {}), termLink(text, term)),
    );
    this.object = make(
      "span",
      { class: "scope-key scope-key-object", hidden: true },
      make("i", {}),
      "object spoken of",
    );
    this.element = make(
      "div",
      { class: "scope-legend" },
      this.name,
      this.low,
      this.ramp,
      this.high,
      ...states,
      this.object,
    );
  }

  draw() {
    const { state, runs } = this.store;
    const context = fitted(this.ramp, 120, 10);
    context.fillStyle = RAMP_GROUND;
    context.fillRect(0, 0, 120, 10);
    for (let x = 0; x < 120; x += 1) {
      context.globalAlpha = coverage(x / 119);
      context.fillStyle = colour(x / 119, state.colours);
      context.fillRect(x, 0, 1, 10);
    }
    context.globalAlpha = 1;
    const where = state.layer === "mean" ? "mean over layers" : `layer ${state.layer}`;
    const head = this.isByHead() ? `, KV head ${state.head}` : "";
    this.name.textContent = `${MAP_NAMES[state.map]}, ${where}${head} (share of a step, ${state.scale === "run" ? "one scale for the run" : "scaled to the step"})`;
    this.high.textContent = this.ends();
    this.object.hidden = !runs.a?.truth && !runs.b?.truth;
  }

  /**
   * Whether the colours are of the chosen KV head: only attention is recorded by head, and not in every run.
   */
  isByHead() {
    const { state, runs } = this.store;
    const recorded = Object.values(runs).some((run) => run?.rows.map_head_scale);
    return recorded && state.head !== "mean" && state.layer !== "mean" && state.map === "attention";
  }

  /** What the brightest colour stands for. */
  ends() {
    const shown = this.panes.filter(({ run, maximum }) => run?.steps && maximum);
    if (!shown.length) return "";
    if (this.store.state.scale === "run") return `≥ ${short(shown[0].maximum)}`;
    return shown.map(({ which, maximum }) => `${which.toUpperCase()} ${short(maximum)}`).join(", ");
  }
}
