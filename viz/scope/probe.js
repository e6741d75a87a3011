/** `window.rcrScope`: what the page shows, read-only, for tests and for the curious in the console. */

import { keptCount, mapValues, memoryFor } from "./images/overlay.js";
import { toFragment } from "./address.js";

export function observe(session) {
  const probe = Object.create(null, Object.getOwnPropertyDescriptors(whatIsShown(session)));
  Object.defineProperties(probe, Object.getOwnPropertyDescriptors(whatRunsSay(session.store)));
  Object.defineProperty(window, "rcrScope", { value: Object.freeze(probe), configurable: true });
}

/** Where the page stands. */
function whatIsShown({ store, client }) {
  return {
    /** The step that every view has painted. */
    get painted() {
      return store.stats.drawn;
    },
    get state() {
      return { ...store.state };
    },
    get fragment() {
      return toFragment(store.state);
    },
    get counters() {
      return { requests: client.requests, frames: store.stats.frames, connected: client.connected };
    },
    get drawTimes() {
      return [...store.stats.draws];
    },
  };
}

/** What the runs A and B hold. */
function whatRunsSay({ runs, pages }) {
  const ofBoth = (name, missing) => ({ a: runs.a?.[name] ?? missing, b: runs.b?.[name] ?? missing });
  return {
    get steps() {
      return ofBoth("steps", 0);
    },
    get status() {
      return ofBoth("status", null);
    },
    get newest() {
      return ofBoth("newest", 0);
    },
    /** The value that a pane paints for a patch, and whether a KV head keeps it. */
    value(which, step, layer, patch, map = "attention", head = "mean") {
      const run = runs[which];
      const found = mapValues(run, pages[which], step, { map, layer, head }, memoryFor(run.patches).values);
      return found && found.exact ? found.values[patch] : null;
    },
    kept(which, step, layer, head, patch) {
      return keptCount(runs[which], step, layer, head)[patch] > 0;
    },
    text(which) {
      return runs[which]?.text ?? "";
    },
  };
}
