/** What a person can do with the studies, and which one is shown; the views of the tab draw it. */

import { Desk } from "../desk.js";
import { focusOn } from "./focus.js";
import { remember, remembered } from "./shown.js";
import { saveRoute } from "../downloads.js";
import { showRoom } from "../rooms.js";

const WAIT = 8; // seconds that the server may hold back what is not new
const RETRY = 2000; // ms after a lost connection, and while another person's study may end
const REFRESH = 4000; // ms at least between two analyses of a study that goes on

/** @typedef {Object} Summary a study on one line, as the server tells it */

export const isRunning = ({ status }) => status === "waiting" || status === "running";

export class StudyDesk extends Desk {
  /** @param {import("../session.js").Session} session */
  constructor(session, signal) {
    super(session);
    /** @type {Summary[]} those for everyone, then one's own, newest first */
    this.studies = [];
    /** What the form offers; null until the server has said. */
    this.choices = null;
    /** @type {?Error} why what is shown may be out of date */
    this.error = null;
    /** @type {?string} id of the study that is shown */
    this.shown = remembered();
    /** What the shown study found, {id, rows, sections, images}; null until it has found something. */
    this.found = null;
    /** @type {?Error} why it could not be analysed */
    this.failed = null;
    /** @type {number} which section of it is shown */
    this.section = 0;
    /** @type {?string} key of the row that is being opened */
    this.opening = null;
    this.seen = false;
    this.following = null; // AbortController
    this.loading = null; // what is being analysed: "id.rows"
    this.loaded = 0; // when it last was
    this.timer = 0;
    signal.addEventListener("abort", () => this.show(false));
  }

  /** @returns {?Summary} the study that is shown */
  get study() {
    return this.studies.find(({ id }) => id === this.shown) ?? null;
  }

  /** Somebody looks, or no longer does; nothing is asked of the server meanwhile. */
  show(seen) {
    if (seen === this.seen) return;
    this.seen = seen;
    if (seen) this.refresh();
    else this.rest();
  }

  rest() {
    this.following?.abort();
    this.following = null;
    clearTimeout(this.timer);
  }

  async refresh() {
    try {
      const { studies, choices } = await this.client.request("studies", { as: "json" });
      Object.assign(this, { studies, choices, error: null });
      if (!this.study) this.choose((studies.find(isRunning) ?? studies[0])?.id ?? null);
      this.follow();
    } catch (error) {
      this.error = error;
      clearTimeout(this.timer);
      if (this.seen) this.timer = setTimeout(() => this.refresh(), RETRY);
    }
    this.changed();
    this.load();
  }

  /** @param {?string} id */
  choose(id) {
    if (id !== this.shown) Object.assign(this, { section: 0, failed: null });
    this.shown = id;
    if (this.found && this.found.id !== id) this.found = null;
    remember(id);
    this.changed();
    this.load();
  }

  chooseSection(section) {
    this.section = section;
    this.changed();
  }

  /** Keep one's running study up to date until it is over; a lost connection only delays it. */
  async follow() {
    const running = this.studies.find((one) => one.mine && isRunning(one));
    if (!running || this.following || !this.seen) return;
    const { signal } = (this.following = new AbortController());
    let { id, stamp } = running;
    while (!signal.aborted) {
      try {
        const query = { wait: WAIT, stamp };
        const now = await this.client.request(`studies/${id}`, { query, signal, as: "json" });
        if (signal.aborted) return;
        this.error = null;
        stamp = now.stamp;
        this.take(now);
        if (!isRunning(now)) break;
      } catch (error) {
        if (signal.aborted) return;
        this.error = error;
        this.changed();
        if (error.status) break; // it is gone
        await new Promise((resolve) => setTimeout(resolve, RETRY));
      }
    }
    this.following = null;
    if (!signal.aborted) this.refresh();
  }

  /** @param {Summary} study a new one, or news of one */
  take(study) {
    const at = this.studies.findIndex(({ id }) => id === study.id);
    if (at >= 0) this.studies[at] = study;
    else this.studies.splice(this.studies.filter((one) => one.public).length, 0, study);
    this.changed();
    this.load();
  }

  /** Have the shown study analysed, if it has rows that are not; while it goes on, not more than now and then. */
  async load() {
    const { study } = this;
    clearTimeout(this.timer);
    if (!study?.done || !this.seen) return;
    const wanted = `${study.id}.${study.done}`;
    const there = this.found?.id === study.id && this.found.rows >= study.done;
    if (there || this.loading === wanted) return;
    const wait = this.loaded && isRunning(study) ? this.loaded + REFRESH - performance.now() : 0;
    if (wait > 0 || this.loading?.startsWith(`${study.id}.`)) {
      this.timer = setTimeout(() => this.load(), Math.max(wait, 200));
      return;
    }
    this.loading = wanted;
    try {
      const ask = (what) => this.client.request(`studies/${study.id}/${what}`, { as: "json" });
      const [tables, images] = await Promise.all([ask("tables"), ask("rows")]);
      if (this.shown !== study.id) return;
      this.found = { id: study.id, rows: tables.rows, sections: tables.sections, images: asRows(images) };
      this.section = Math.min(this.section, tables.sections.length - 1);
      this.failed = null;
    } catch (error) {
      this.failed = error;
    }
    this.loaded = performance.now();
    if (this.loading === wanted) this.loading = null;
    this.changed();
  }

  /** Start a study. Fails with the server's words where it is not taken. */
  async start(values) {
    const body = JSON.stringify(values);
    const study = await this.client.request("studies", { method: "POST", body, as: "json" });
    this.take(study);
    this.choose(study.id);
    this.follow();
  }

  /** @param {File} file @returns {Promise<string>} what the picture is called in a request */
  async sendPicture(file) {
    const query = { name: file.name };
    const path = "studies/pictures";
    const { picture } = await this.client.request(path, { method: "POST", body: file, query, as: "json" });
    return picture;
  }

  forgetPicture(picture) {
    return this.client.request(`studies/pictures/${picture}`, { method: "DELETE" }).catch(() => {});
  }

  stop(id) {
    return this.trying(async () => {
      this.take(await this.client.request(`studies/${id}/stop`, { method: "POST", as: "json" }));
    });
  }

  drop(id) {
    return this.trying(async () => {
      await this.client.request(`studies/${id}`, { method: "DELETE" });
      this.studies = this.studies.filter((one) => one.id !== id);
      this.choose(this.studies[0]?.id ?? null);
    });
  }

  /** @param {string} what under the address of the shown study */
  save(what) {
    return this.trying(() => saveRoute(this.client, `studies/${this.shown}/${what}`));
  }

  /** Show a row's run as A and the uncompressed one as B, where they first differ. */
  async open(key) {
    if (this.opening) return;
    this.opening = key;
    this.changed();
    const { session } = this;
    await this.trying(async () => {
      const path = `studies/${this.shown}/rows/${key}/open`;
      const { a, b, step } = await this.client.request(path, { method: "POST", as: "json" });
      session.openPair(a, b, { step: step ?? 0, follow: false });
      if (step === null && b) session.say("these two texts are the same to the end", "", "info");
      showRoom("Scope");
      window.scrollTo(0, 0);
      focusOn("#scope .scope-range");
    });
    this.opening = null;
    this.changed();
  }
}

/** The rows of the main comparisons as objects, those of an image beside each other. */
function asRows({ fields, rows }) {
  const found = rows.map((row) => Object.fromEntries(fields.map((name, at) => [name, row[at]])));
  const place = new Map();
  for (const { sample } of found) if (!place.has(sample)) place.set(sample, place.size);
  return found.sort((one, other) => place.get(one.sample) - place.get(other.sample));
}
