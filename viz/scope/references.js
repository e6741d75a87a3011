/** The uncompressed runs that others are held against: their fidelity, and when they are of no more use. */

import { isLive } from "./run.js";

const EVERY = 1000; // ms
const TRIES = 900;

export class References {
  /**
   * @param {import("./client.js").Client} client
   * @param {import("./store.js").Store} store
   */
  constructor(client, store) {
    Object.assign(this, { client, store });
    /** @type {Map<string, number>} ROUGE-L to the uncompressed run, by run id, where it is known */
    this.known = new Map();
  }

  /** The fidelity of a run, undefined while it is not known. */
  fidelity(id) {
    return this.known.get(id);
  }

  /**
   * Ask for the fidelity of an ended run; while its uncompressed run still goes on, ask again.
   * @param {AbortSignal} signal when the run is shown no more
   */
  async learn(run, signal, again = TRIES) {
    const waits = again && run.mine && run.status === "done" && run.policy !== "full";
    const pending = waits && (await this.liveFor(run)).length > 0;
    // after the list: what has ended meanwhile counts
    const { fidelity } = await this.client.summary(run.id, signal);
    if (fidelity !== null) {
      this.known.set(run.id, fidelity);
      this.store.signal("fidelity");
    } else if (pending && !signal.aborted) {
      setTimeout(() => this.learn(run, signal, again - 1).catch(() => {}), EVERY);
    }
  }

  /**
   * The uncompressed runs that go on and that a run of ours is to be held against, as the server lists them.
   */
  async liveFor({ id }) {
    const { runs } = await this.client.list();
    const run = runs.find((one) => one.id === id);
    if (!run) return [];
    return runs.filter((one) => one.mine && one.policy === "full" && isLive(one) && sameQuestion(one, run));
  }

  /** Stop the uncompressed runs that were to be held against stopped ones alone. */
  async stopIdle(stoppedRuns) {
    const ids = new Set(stoppedRuns.map(({ id }) => id));
    const { runs } = await this.client.list();
    const stopped = runs.filter(({ id }) => ids.has(id));
    const going = runs.filter((run) => !ids.has(run.id) && run.mine && isLive(run));
    const waiting = going.filter(({ policy }) => policy !== "full");
    const asked = (those, run) => those.some((one) => sameQuestion(one, run));
    const idle = going.filter((run) => run.policy === "full" && asked(stopped, run) && !asked(waiting, run));
    // They may be gone already: nobody looks at them.
    await Promise.allSettled(idle.map(({ id }) => this.client.stop(id)));
  }
}

/**
 * Whether two runs answer the same question. The server knows only once both are prepared; until then, by
 * name.
 */
function sameQuestion(one, other) {
  return one.subject && other.subject ? one.subject === other.subject : one.label === other.label;
}
