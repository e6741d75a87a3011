/** One figure: drawn from the server's JSON, and saved as a picture or as its numbers. */

import { asCsv, fileStem, save } from "./downloads.js";
import { CONFIG, groundOf, inTheme, numbers, plotly } from "./plotly.js";
import { make, termLink } from "../dom.js";
import { title as titleOf } from "./columns.js";

const SCALE = 2; // of a saved picture: pixels per pixel of the page
const TITLE = 36; // pixels that the title of a saved picture takes

/**
 * @typedef {Object} Kind
 * @property {string} name     as the server knows it
 * @property {string} head
 * @property {string} about
 * @property {string[]} names  of x, y and z in the figure's CSV
 * @property {string} term     of the glossary
 */

export class Figure {
  /**
   * @param {Kind} kind
   * @param {import("./desk.js").Desk} desk
   */
  constructor(kind, desk) {
    this.kind = kind;
    this.desk = desk;
    this.run = null;
    this.steps = -1; // of what is drawn
    this.data = null; // traces; null where there is nothing to draw
    this.plot = make("div", { class: "runs-plot" });
    this.note = make("p", { class: "runs-plot-note", role: "status" });
    const box = make("div", { class: "runs-plot-box" }, this.plot, this.note);
    const button = (text, onclick) =>
      make("button", { type: "button", class: "runs-action", disabled: true, onclick }, text);
    this.buttons = [
      button("PNG", () => this.picture("png")),
      button("SVG", () => this.picture("svg")),
      button("CSV", () => this.table()),
    ];
    ["as a picture", "as a drawing", "its numbers"].forEach((text, at) => {
      this.buttons[at].title = `save ${kind.head}: ${text}`;
      this.buttons[at].setAttribute("aria-label", `${this.buttons[at].textContent} of ${kind.head}`);
    });
    const head = make(
      "div",
      { class: "runs-figure-head" },
      make("h3", {}, termLink(kind.head, kind.term)),
      ...this.buttons,
    );
    const about = make("figcaption", { class: "scope-hint" }, kind.about);
    this.element = make("figure", { class: "runs-figure" }, head, about, box);
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

  async paint(Plotly, data, layout) {
    if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false; // a finger scrolls the page
    this.data = data;
    this.said("", false);
    this.plot.classList.remove("runs-short");
    await Plotly.react(this.plot, data, inTheme(layout, this.plot), CONFIG);
  }

  /** Nothing to draw, and why; where that will stay so, in less room. */
  clear(text, short = false) {
    if (this.data) window.Plotly.purge(this.plot);
    this.data = null;
    this.run = null;
    this.steps = -1;
    this.said(text, true);
    this.plot.classList.toggle("runs-short", short);
  }

  failed(error) {
    this.clear(error.hint ? `${error.message}: ${error.hint}` : error.message);
    const onclick = () => this.desk.changed();
    this.note.append(make("button", { type: "button", class: "runs-action", onclick }, "Try again"));
  }

  said(text, empty) {
    this.note.textContent = text;
    for (const button of this.buttons) button.disabled = empty;
  }

  /** Follow the page's colours. */
  theme() {
    const { data, layout } = this.plot;
    if (this.data) window.Plotly.react(this.plot, data, inTheme(layout, this.plot), CONFIG);
  }

  /** @param {"png"|"svg"} format on the page's ground, so that its texts can be read wherever it goes */
  picture(format) {
    return this.desk.trying(async () => {
      const { width, height } = this.plot.getBoundingClientRect();
      const filename = `${fileStem(this.run)}.${this.kind.name}`;
      const size = { width, height: height + TITLE, scale: SCALE };
      await window.Plotly.downloadImage(this.titled(), { format, filename, ...size });
    });
  }

  /** The figure as it leaves the page: with a title, and a ground under it. */
  titled() {
    const { layout } = this.plot;
    const data = this.plot.data.filter((trace) => trace.visible !== "legendonly");
    const ground = groundOf(this.plot);
    const text = plain(`${titleOf(this.run)}: ${this.kind.head}`);
    const place = { x: 0.01, xanchor: "left", yref: "container", y: 0.975, yanchor: "top" };
    const title = { text, ...place, font: { size: 14 } };
    const margin = { ...layout.margin, t: (layout.margin?.t ?? 0) + TITLE };
    const font = { ...layout.font, family: "sans-serif" }; // a picture cannot bring the page's font along
    return { data, layout: { ...layout, font, paper_bgcolor: ground, plot_bgcolor: ground, margin, title } };
  }

  table() {
    const rows = [["series", ...this.kind.names]];
    for (const trace of this.data) {
      if (trace.visible === "legendonly") continue;
      rows.push(...(trace.type === "heatmap" ? cellRows(trace, this.kind) : pointRows(trace, this.kind)));
    }
    const text = new Blob([asCsv(rows)], { type: "text/csv" });
    save(text, `${fileStem(this.run)}.${this.kind.name}-figure.csv`);
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

/** Plotly reads some HTML in its texts; a name is a name. */
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
