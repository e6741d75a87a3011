/**
 * One run as the page holds it: everything of a trace but the maps per layer, which come in pages (pages.js).
 *
 * Letters as in the core: N steps, L layers, H KV heads, S selected entries, P visual tokens ("patches").
 */

import { pictureFiles, Shots } from "./images/shots.js";
import { readSafetensors } from "./safetensors.js";
import { Rows } from "./rows.js";

const PER_STEP = [
  "tokens",
  "logprob",
  "top_ids",
  "top_logprob",
  "drift",
  "tau",
  "fire",
  "selected_row",
  "mass",
];
const SCALES = { attention: "map_layer_scale", missed: "missed_layer_scale", full: "map_full_scale" };
const OPTIONAL = ["missed", "drift_exact", "recall", "map_head_scale", ...Object.values(SCALES)];
const MAPS = ["map_mean", "map_mean_scale"];
const LIVE = new Set(["opening", "queued", "loading", "prefill", "decoding"]);

/** Whether more of a run will come; of a run as the page holds it, or as the server lists it. */
export const isLive = ({ status }) => LIVE.has(status);

export class Run {
  constructor(id) {
    this.id = id;
    this.label = "";
    this.policy = "";
    this.status = "opening"; // until the server has said how it stands
    this.place = 0;
    this.mine = false; // whether this browser may stop it
    this.stopping = false; // asked for, not yet done
    this.stamp = ""; // how the server said that the run stands
    this.error = null;
    this.stopReason = "";
    this.rate = 0;
    this.newest = 0;
    this.truth = null;
    this.meta = null;
    this.steps = 0;
    /** @type {Object<string, Rows>} */
    this.rows = {};
    this.tokenText = [];
    this.tokenStart = [0]; // character at which each token's text begins
    this.topText = [];
    this.text = "";
    this.images = []; // bitmaps, by image; those that cannot be drawn, or are not here yet, are missing
    this.shots = null;
    this.selections = null;
  }

  get live() {
    return isLive(this);
  }

  get layers() {
    return this.meta?.layers ?? 0;
  }

  get heads() {
    return this.meta?.kv_heads ?? 0;
  }

  /** Width and height of an image: of its picture where it is here, else of the original. */
  pictureSize(image) {
    const { width, height } = this.images[image] ?? {};
    return width ? [width, height] : this.meta.image_size[image].toReversed();
  }

  get patches() {
    return this.patchPosition?.length ?? 0;
  }

  /** Z: the pixels of a map of a single layer; fewer than patches where those would have been too many. */
  get cells() {
    return this.patchCell ? this.patchCell.reduce((most, cell) => Math.max(most, cell + 1), 0) : this.patches;
  }

  /** Whether layer-step (step, layer) was a decision: a decode step of a layer that evicts something. */
  decided(step, layer) {
    return step > 0 && Boolean(this.meta?.managed[layer]) && this.rows.selected_row.at(step, layer) >= 0;
  }

  fired(step, layer) {
    return this.rows.fire.at(step, layer) === 1;
  }

  /** The layers that a choice stands for: every managed one, or the chosen one alone. */
  chosenLayers(layer) {
    return layer === "mean" ? this.managedLayers : [layer];
  }

  /** Which layers decided at a step: of all (for "mean"), or of the chosen one alone. */
  deciding(step, layer = "mean") {
    return this.chosenLayers(layer).filter((one) => this.decided(step, one));
  }

  /** Drift or tau of a step, mean over the layers that decided there; NaN where none did. */
  meanOfDecisions(name, step, layer = "mean") {
    const deciding = this.deciding(step, layer);
    return deciding.reduce((sum, one) => sum + this.rows[name].at(step, one), 0) / deciding.length;
  }

  /** Mean drift of the layers that decided at a step; 0 where none did. */
  meanDrift(step, layer = "mean") {
    return this.meanOfDecisions("drift", step, layer) || 0;
  }

  /**
   * Mean tau of the layers that decided at a step; 0 where none did, or where nothing is compared with it.
   */
  meanTau(step, layer = "mean") {
    return this.meanOfDecisions("tau", step, layer) || 0;
  }

  /** Share of the deciding layers that refreshed at a step, 0 to 1. */
  refreshShare(step) {
    const deciding = this.deciding(step);
    return deciding.length ? deciding.filter((layer) => this.fired(step, layer)).length / deciding.length : 0;
  }

  /** Share of the attention of a step that rests on visual entries, mean over the managed layers. */
  visualShare(step) {
    return this.meanOf(this.rows.mass, step, 4);
  }

  /**
   * The prefix indices that a KV head of a layer attended to: length S; null where it kept its whole prefix.
   */
  selection(step, layer, head) {
    const row = this.rows.selected_row.at(step, layer);
    if (row < 0) return null;
    const width = this.meta.select;
    return this.selections.row(row).subarray(head * width, (head + 1) * width);
  }

  /** Whether the run has maps of a kind; that of the uncompressed attention is a diagnostic. */
  records(map) {
    return Boolean(this.rows[SCALES[map]]);
  }

  /**
   * The largest value of a map at a step; of the mean over layers, at most the mean of the layers' largest.
   */
  scaleAt(map, layer, head, step) {
    if (layer === "mean" && map === "attention") return this.rows.map_mean_scale.at(step);
    const byHead = head !== "mean" && map === "attention" && layer !== "mean" && this.rows.map_head_scale;
    if (byHead) return byHead.at(step, layer * this.heads + head);
    const rows = this.rows[SCALES[map]];
    if (!rows) return 0;
    return layer === "mean" ? this.meanOf(rows, step) : rows.at(step, layer);
  }

  /** Mean over the managed layers of the first of some numbers per layer. */
  meanOf(rows, step, perLayer = 1) {
    let sum = 0;
    for (const layer of this.managedLayers) sum += rows.at(step, perLayer * layer);
    return this.managedLayers.length ? sum / this.managedLayers.length : 0;
  }

  /**
   * Take in a batch of the server (a safetensors file whose metadata holds `state`).
   * @param {ArrayBuffer} buffer
   */
  append(buffer) {
    const { metadata, arrays } = readSafetensors(buffer);
    const state = JSON.parse(metadata.state);
    if (state.from > this.steps || (state.from < this.steps && state.to > state.from)) {
      throw new Error(`the server sent the steps from ${state.from}, ${this.steps} was asked for`);
    }
    this.takeState(state);
    if (state.meta && !this.meta) this.begin(state.meta, arrays);
    if (state.to > state.from) this.takeSteps(state, arrays);
    return state;
  }

  takeState(state) {
    Object.assign(this, {
      label: state.label,
      kind: state.kind,
      policy: state.policy,
      status: state.status,
      place: state.place,
      mine: state.mine,
      stamp: state.stamp,
      error: state.error,
      stopReason: state.stop_reason,
      rate: state.rate,
      newest: state.newest,
      truth: state.truth,
    });
  }

  /** No more of the run will come; its steps so far stay. */
  breakOff(error) {
    Object.assign(this, { status: "error", place: 0, error });
  }

  begin(meta, arrays) {
    this.meta = meta;
    const { kv_heads: heads, select } = meta;
    for (const name of ["patch_box", "patch_position", "patch_image", "patch_frame", "patch_level"]) {
      const key = name.replace(/_(.)/, (_, letter) => letter.toUpperCase());
      this[key] = arrays[name].data.slice();
    }
    this.patchCell = arrays.patch_cell?.data.slice() ?? null; // null: each has its own pixel in every map
    this.managedLayers = meta.managed.flatMap((managed, layer) => (managed ? [layer] : []));
    this.patchOf = new Int32Array(meta.prompt_length).fill(-1);
    this.patchPosition.forEach((index, patch) => {
      this.patchOf[index] = patch;
    });
    this.windowPatches = Array.from(this.patchPosition.keys()).filter(
      (patch) => this.patchPosition[patch] >= meta.prefix_length, // never evicted
    );
    this.pictureFiles = pictureFiles(arrays);
    this.shots = new Shots(this);
    this.selections = new Rows(arrays.selected.data.constructor, heads * select);
  }

  beginRows(arrays) {
    for (const name of [...PER_STEP, ...OPTIONAL, ...MAPS]) {
      if (!arrays[name]) continue;
      const width = arrays[name].shape.slice(1).reduce((product, size) => product * size, 1);
      this.rows[name] = new Rows(arrays[name].data.constructor, width);
    }
  }

  takeSteps(state, arrays) {
    if (!this.steps) this.beginRows(arrays);
    for (const [name, rows] of Object.entries(this.rows)) rows.push(arrays[name].data);
    this.selections.push(arrays.selected.data);
    if (state.top_text) this.topText.push(...state.top_text);
    for (const piece of state.token_text) {
      this.tokenText.push(piece ?? "");
      this.text += piece ?? "";
      this.tokenStart.push(this.text.length);
    }
    this.steps = state.to;
  }
}
