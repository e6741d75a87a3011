/** The runs that this browser may see, kept up to date while somebody looks. */

import { isLive } from "../run.js";

const EVERY = 1000; // ms while a run of ours is live
const RETRY = 2000; // ms after a lost connection

/** @typedef {Object} Summary a run on one line, as the server tells it */

export class RunList {
  /** @param {import("../client.js").Client} client */
  constructor(client) {
    this.client = client;
    /** @type {Summary[]} own runs (newest first), those of links, then those for everybody */
    this.runs = [];
    this.known = false; // whether the server has answered yet
    /** @type {?Error} why the list may be out of date */
    this.error = null;
    this.visible = false;
    this.timer = 0;
    this.turn = 0;
    this.onChange = () => {};
  }

  /** @returns {?Summary} */
  get(id) {
    return this.runs.find((run) => run.id === id) ?? null;
  }

  /** Somebody looks, or no longer does; nothing is asked of the server meanwhile. */
  show(visible) {
    if (visible === this.visible) return;
    this.visible = visible;
    clearTimeout(this.timer);
    if (visible) this.refresh();
  }

  /** Ask for the whole list. An answer that a later question has overtaken is left aside. */
  async refresh() {
    this.turn += 1;
    const turn = this.turn;
    await this.asking(async () => {
      const { runs } = await this.client.list();
      const shared = await this.shared(runs);
      if (turn !== this.turn) return;
      const own = runs.filter((run) => run.mine);
      this.runs = [...own, ...shared, ...runs.filter((run) => !run.mine)];
      this.known = true;
    });
  }

  /** Ask for the live ones alone; when one of them has ended, others may now be measured against it. */
  async refreshLive() {
    const turn = this.turn;
    let ended = false;
    await this.asking(async () => {
      const live = this.runs.filter((run) => run.mine && isLive(run));
      const now = await Promise.all(live.map((run) => this.client.summary(run.id)));
      if (turn !== this.turn) return;
      now.forEach((run) => this.take(run));
      ended = now.some((run) => !isLive(run));
    });
    const gone = this.error?.status === 404; // dropped in another window
    if (ended || gone) await this.refresh();
  }

  async asking(ask) {
    try {
      await ask();
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this.onChange();
    this.schedule();
  }

  schedule() {
    clearTimeout(this.timer);
    if (!this.visible) return;
    if (this.error) this.timer = setTimeout(() => this.refresh(), RETRY);
    else if (this.runs.some((run) => run.mine && isLive(run))) {
      this.timer = setTimeout(() => this.refreshLive(), EVERY);
    }
  }

  /** Runs that a link brought along; those that are gone are left out. */
  async shared(listed) {
    const ids = [...this.client.keys.keys()].filter((id) => !listed.some((run) => run.id === id));
    const found = await Promise.allSettled(ids.map((id) => this.client.summary(id)));
    return found.flatMap(({ value }) => (value ? [{ ...value, shared: true }] : []));
  }

  /** @param {Summary} run a new one, or news of one */
  take(run) {
    const at = this.runs.findIndex(({ id }) => id === run.id);
    if (at < 0) this.runs.unshift(run);
    else this.runs[at] = run;
  }

  remove(id) {
    this.turn += 1;
    this.runs = this.runs.filter((run) => run.id !== id);
    this.onChange();
  }
}
