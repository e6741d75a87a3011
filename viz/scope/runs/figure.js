/** One figure of a run: drawn from the server's JSON, and saved as a picture or as its numbers. */

import { asCsv, fileStem, save } from "../downloads.js";
import { numbers, plotly } from "../plotly.js";
import { Plot } from "../plot.js";
import { termLink } from "../dom.js";
import { title as titleOf } from "./columns.js";

/**
 * @typedef {Object} Kind
 * @property {string} name     as the server knows it
 * @property {string} head
 * @property {string} about
 * @property {string[]} names  of x, y and z in the figure's CSV
 * @property {string} term     of the glossary
 */

export class Figure extends Plot {
  /**
   * @param {Kind} kind
   * @param {import("./desk.js").Desk} desk
   */
  constructor(kind, desk) {
    super({ ...kind, label: termLink(kind.head, kind.term) });
    this.kind = kind;
    this.desk = desk;
    this.run = null;
    this.steps = -1; // of what is drawn
    this.addButton("CSV", "its numbers", () => this.table());
  }

  get stem() {
    return `${fileStem(this.run)}.${this.kind.name}`;
  }

  get title() {
    return `${titleOf(this.run)}: ${this.head}`;
  }

  trying(act) {
    return this.desk.trying(act);
  }

  retry() {
    this.desk.changed();
  }

  /** Draw a run as far as it has come. What is drawn already stays while the next is fetched. */
  async draw(run, signal) {
    const { client } = this.desk;
    if (this.run?.id !== run.id) this.said("drawing", true);
    try {
      const [Plotly, answer] = await Promise.all([
        plotly(client),
        client.request(`runs/${run.id}/figures/${this.kind.name}`, { signal }),
      ]);
      const { data, layout } = await answer.json();
      if (signal.aborted) return;
      if (data.length) await this.paint(Plotly, data, { ...layout, uirevision: run.id });
      else this.clear(saidIn(layout), true);
      [this.run, this.steps] = [run, run.steps];
    } catch (error) {
      if (!signal.aborted && this.run?.id !== run.id) this.failed(error);
    }
  }

  clear(text, short = false) {
    super.clear(text, short);
    this.run = null;
    this.steps = -1;
  }

  table() {
    const rows = [["series", ...this.kind.names]];
    for (const trace of this.data) {
      if (trace.visible === "legendonly") continue;
      rows.push(...(trace.type === "heatmap" ? cellRows(trace, this.kind) : pointRows(trace)));
    }
    const text = new Blob([asCsv(rows)], { type: "text/csv" });
    save(text, `${this.stem}-figure.csv`);
  }
}

function pointRows(trace) {
  const [x, y] = [numbers(trace.x), numbers(trace.y)];
  return x.map((at, index) => [trace.name ?? "", at, y[index]]);
}

function cellRows(trace, kind) {
  const [x, y, z] = [numbers(trace.x), numbers(trace.y), numbers(trace.z)];
  return y.flatMap((layer, row) => x.map((step, at) => [kind.name, step, layer, z[row][at]]));
}

/** What a figure without traces says instead. */
const saidIn = ({ annotations }) => asText(annotations?.[0]?.text ?? "there is nothing to draw");

const asText = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
