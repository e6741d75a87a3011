/**
 * The maps per layer of a run, in pages of steps around the cursor; the least recently used are let go.
 *
 * A run that is small enough is fetched whole once it has ended, so that no later step asks the server.
 */

import { readSafetensors } from "./safetensors.js";

const PAGE = 16; // steps
const AT_REST = 60; // ms
const WHOLE = 40 << 20; // bytes; runs up to this size are fetched whole
const CAP = 32 << 20; // bytes of any other run, which has more besides its maps
const MAPS = { attention: "map_layer", missed: "missed_layer", full: "map_full" };

export class LayerPages {
  /**
   * @param {import("./run.js").Run} run
   * @param {import("./client.js").Client} client
   * @param {function(): void} onPage called when a page has come
   * @param {function(Error): void} onFail called when one cannot come
   */
  constructor(run, client, onPage, onFail) {
    Object.assign(this, { run, client, onPage, onFail });
    this.pages = new Map(); // page number -> {arrays, rows, bytes}, in order of last use
    this.asked = new Set();
    this.bytes = 0;
    this.abort = new AbortController();
    this.timer = 0;
  }

  /**
   * The map of one layer-step: values u8 [P] and what 255 stands for; null while its page is missing.
   * @param {"attention"|"missed"|"full"} kind
   * @param {number|"mean"} head only attention has maps per KV head
   */
  map(step, layer, kind, head = "mean") {
    const page = this.pages.get(Math.floor(step / PAGE));
    const row = step % PAGE;
    if (!page || row >= page.rows) return null;
    const byHead = head !== "mean" && kind === "attention" && page.arrays.map_head;
    const array = page.arrays[byHead ? "map_head" : MAPS[kind]];
    if (!array) return null;
    const scale = page.arrays[byHead ? "map_head_scale" : `${MAPS[kind]}_scale`];
    const { layers, heads, patchCell } = this.run;
    const index = byHead ? (row * layers + layer) * heads + head : row * layers + layer;
    const width = array.shape.at(-1);
    const pixels = array.data.subarray(index * width, (index + 1) * width);
    return { values: patchCell ? byPatch(pixels, patchCell) : pixels, scale: scale.data[index] };
  }

  /**
   * Ask for the page of a step: at once where its row is missing. Its neighbour follows when the step rests.
   */
  want(step, direction = 1) {
    const page = Math.floor(step / PAGE);
    this.touch(page);
    if (!(step % PAGE < this.pages.get(page)?.rows)) this.fetch(page).catch(this.onFail);
    clearTimeout(this.timer);
    const neighbour = page + Math.sign(direction || 1);
    this.timer = setTimeout(() => this.fetch(neighbour).catch(this.onFail), AT_REST);
  }

  /** Whether the maps of the run, as far as it has come, are little enough to be held whole. */
  get small() {
    const { run } = this;
    const maps = 2 + (run.records("full") ? 1 : 0) + (run.rows.map_head_scale ? run.heads : 0);
    return run.steps * run.layers * run.cells * maps <= WHOLE;
  }

  /** Fetch everything, if the run is small enough. Called when it has ended. */
  async wantAll() {
    const { run } = this;
    if (!this.small) return;
    for (let page = 0; page * PAGE < run.steps && !this.abort.signal.aborted; page += 1)
      await this.fetch(page);
  }

  async fetch(page) {
    const from = page * PAGE;
    const to = Math.min(from + PAGE, this.run.steps);
    const held = this.pages.get(page);
    if (page < 0 || from >= to || this.asked.has(page) || (held && held.rows >= to - from)) return;
    this.asked.add(page);
    try {
      const buffer = await this.client.layers(this.run.id, from, to, this.abort.signal);
      const { arrays } = readSafetensors(buffer);
      this.bytes -= this.pages.get(page)?.bytes ?? 0; // another than before may be held by now, or none
      this.pages.delete(page);
      this.pages.set(page, { arrays, rows: to - from, bytes: buffer.byteLength });
      this.bytes += buffer.byteLength;
      this.shrink();
      this.onPage();
    } catch (error) {
      if (error.name !== "AbortError" && error.status !== 0) throw error;
    } finally {
      this.asked.delete(page);
    }
  }

  touch(page) {
    const held = this.pages.get(page);
    if (!held) return;
    this.pages.delete(page);
    this.pages.set(page, held);
  }

  shrink() {
    if (this.small) return;
    for (const [page, held] of this.pages) {
      if (this.bytes <= CAP) return;
      this.pages.delete(page);
      this.bytes -= held.bytes;
    }
  }

  /** Ask for no more; what has come stays. */
  stop() {
    this.abort.abort();
    clearTimeout(this.timer);
  }

  close() {
    this.stop();
    this.pages.clear();
  }
}

/** A map with a pixel a cell, u8 [Z], as one with a pixel a visual token, u8 [P]. */
function byPatch(pixels, patchCell) {
  const values = new Uint8Array(patchCell.length);
  for (let patch = 0; patch < values.length; patch += 1) values[patch] = pixels[patchCell[patch]];
  return values;
}
