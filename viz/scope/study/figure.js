/** One figure of a study, from the server's JSON; marks of single images open their runs. */

import { Plot } from "../plot.js";
import { plotly } from "../plotly.js";

// Pixels above a figure without its title, which stands above it here: with and without a legend.
const TOP = 48;
const BARE_TOP = 16;

export class StudyFigure extends Plot {
  /**
   * @param {string} name as the server knows it
   * @param {number} section
   * @param {import("./desk.js").StudyDesk} desk
   */
  constructor(name, section, desk) {
    super({ head: name, about: "" });
    this.name = name;
    this.section = section;
    this.desk = desk;
    this.near = false;
    this.asked = null; // the findings that it shows
    this.waiting = null; // what it is to draw once it is in sight
    this.abort = new AbortController();
    this.listens = false;
    this.element.classList.add("study-figure");
    this.element.hidden = true; // until there is something to draw
    this.said("drawing", true);
  }

  get stem() {
    return `study.${this.name}`;
  }

  trying(act) {
    return this.desk.trying(act);
  }

  retry() {
    this.asked = null;
    this.draw(this.desk.found);
  }

  /**
   * Show what was found. What a figure has to draw is asked for at once, since it may be nothing; it is drawn when it
   * comes into sight, and what comes later is asked for only there.
   */
  async draw(found) {
    const { signal } = this.abort;
    if (!found || signal.aborted || (!this.near && !this.element.hidden)) return;
    try {
      if (this.asked !== found) await this.ask(found);
      if (this.near && this.waiting) await this.show(this.waiting, found);
    } catch (error) {
      if (signal.aborted) return;
      this.element.hidden = false;
      if (!this.data) this.failed(error);
    }
  }

  async ask(found) {
    const path = `studies/${found.id}/figures/${this.section}/${this.name}`;
    const answer = await this.desk.client.request(path, { signal: this.abort.signal });
    this.waiting = answer.status === 204 ? null : await answer.json();
    this.asked = found;
    this.element.hidden = !this.waiting;
    if (this.waiting) this.frame(this.waiting.layout);
  }

  /** What can be said before it is drawn: its name, and how high it is. */
  frame({ title, meta, height, margin }) {
    const head = asText(title.text);
    this.plot.style.height = `${height - margin.t + TOP}px`;
    if (this.head === head) return;
    this.head = head;
    this.label.textContent = head;
    this.caption.textContent = meta.caption;
    for (const button of this.buttons) {
      button.title = `save ${head} as ${button.textContent}`;
      button.setAttribute("aria-label", `${button.textContent} of ${head}`);
    }
  }

  async show({ data, layout }, found) {
    const Plotly = await plotly(this.desk.client);
    if (this.abort.signal.aborted) return;
    this.waiting = null;
    const { title, meta, height, margin, ...rest } = layout;
    const named = data.filter(
      ({ name, showlegend, type }) => name && showlegend !== false && type !== "heatmap",
    );
    const top = named.length && data.length > 1 ? TOP : BARE_TOP;
    this.plot.style.height = `${height - margin.t + top}px`;
    const own = { ...rest, margin: { ...margin, t: top }, autosize: true, uirevision: found.id };
    await this.paint(Plotly, data, own);
    if (this.listens) return;
    this.listens = true;
    this.plot.on("plotly_click", ({ points }) => {
      const key = points[0]?.customdata?.[0];
      if (typeof key === "string") this.desk.open(key);
    });
  }

  close() {
    this.abort.abort();
    this.clear("");
  }
}

const asText = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
