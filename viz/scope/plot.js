/** One figure: drawn by plotly in the page's colours, and saved as a picture. What is drawn, others say. */

import { CONFIG, groundOf, inTheme } from "./plotly.js";
import { make } from "./dom.js";

const SCALE = 2; // of a saved picture: pixels per pixel of the page
const TITLE = 36; // pixels that the title of a saved picture takes

/**
 * @typedef {Object} About
 * @property {string} head  what the figure is called
 * @property {Node|string} [label]  the same, as it stands on the page
 * @property {string} about how to read it
 */

export class Plot {
  /** @param {About} said */
  constructor(said) {
    this.head = said.head;
    this.data = null; // traces; null where there is nothing to draw
    this.plot = make("div", { class: "runs-plot" });
    this.note = make("p", { class: "runs-plot-note", role: "status" });
    const box = make("div", { class: "runs-plot-box" }, this.plot, this.note);
    this.label = make("h3", {}, said.label ?? said.head);
    this.caption = make("figcaption", { class: "scope-hint" }, said.about);
    this.buttons = [];
    this.bar = make("div", { class: "runs-figure-head" }, this.label);
    this.addButton("PNG", "as a picture", () => this.picture("png"));
    this.addButton("SVG", "as a drawing", () => this.picture("svg"));
    this.element = make("figure", { class: "runs-figure" }, this.bar, this.caption, box);
  }

  /** A name for its files. */
  get stem() {
    return "figure";
  }

  /** What a saved picture is called. */
  get title() {
    return this.head;
  }

  /** Run something that may fail. */
  trying(act) {
    return act();
  }

  /** Draw again what could not be drawn. */
  retry() {}

  addButton(text, about, onclick) {
    const button = make("button", { type: "button", class: "runs-action", disabled: true, onclick }, text);
    button.title = `save ${this.head}: ${about}`;
    button.setAttribute("aria-label", `${text} of ${this.head}`);
    this.buttons.push(button);
    this.bar.append(button);
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
    this.said(text, true);
    this.plot.classList.toggle("runs-short", short);
  }

  failed(error) {
    this.clear(error.hint ? `${error.message}: ${error.hint}` : error.message);
    const onclick = () => this.retry();
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
    return this.trying(async () => {
      const { width, height } = this.plot.getBoundingClientRect();
      const size = { width, height: height + TITLE, scale: SCALE };
      await window.Plotly.downloadImage(this.titled(), { format, filename: this.stem, ...size });
    });
  }

  /** The figure as it leaves the page: with a title, and a ground under it. */
  titled() {
    const { layout } = this.plot;
    const data = this.plot.data.filter((trace) => trace.visible !== "legendonly");
    const ground = groundOf(this.plot);
    const place = { x: 0.01, xanchor: "left", yref: "container", y: 0.975, yanchor: "top" };
    const title = { text: plain(this.title), ...place, font: { size: 14 } };
    const margin = { ...layout.margin, t: (layout.margin?.t ?? 0) + TITLE };
    const font = { ...layout.font, family: "sans-serif" }; // a picture cannot bring the page's font along
    return { data, layout: { ...layout, font, paper_bgcolor: ground, plot_bgcolor: ground, margin, title } };
  }
}

/** Plotly reads some HTML in its texts; a name is a name. */
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
