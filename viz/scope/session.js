/** What the page does: opens runs as A and B, keeps them up to date, and tells the person what goes wrong. */

import { Client } from "./client.js";
import { LayerPages } from "./pages.js";
import { References } from "./references.js";
import { Run } from "./run.js";
import { Store } from "./store.js";

/** The one session of this page; its tabs share it. */
let session = null;

export function theSession() {
  session ??= new Session(new Client(location.origin + location.pathname));
  return session;
}

const COMPARE_EVERY = 400; // ms while runs are live
const IDLE_FIRST = 100; // ms by which stopping A and B may be put off

export class Session {
  /** @param {import("./client.js").Client} client */
  constructor(client) {
    this.client = client;
    this.store = new Store();
    this.opened = { a: null, b: null }; // AbortControllers
    /** @type {{text: string, hint: string, kind: "error"|"info"}[]} each stays until it is dismissed */
    this.notices = [];
    this.compared = 0;
    this.linked = false; // whether the view came with a link, which is to be restored or to say what it cannot
    this.references = new References(client, this.store);
    client.onConnection = () => this.store.signal("connection");
  }

  say(text, hint = "", kind = "error") {
    if (this.notices.some((notice) => notice.text === text)) return;
    this.notices.push({ text, hint, kind });
    this.store.signal("notice");
  }

  dismiss(notice) {
    this.notices = this.notices.filter((one) => one !== notice);
    this.store.signal("notice");
  }

  fail(error) {
    if (error.name !== "AbortError") this.say(error.message, error.hint ?? "");
  }

  /**
   * Open a pair. The view starts afresh unless `view` brings fields of its own (a shared link does).
   * @param {?string} a
   * @param {?string} b
   * @param {Partial<import("./store.js").State>} view
   */
  openPair(a, b, view = {}) {
    this.notices = [];
    this.store.signal("notice");
    const fresh = {
      step: 0,
      patch: null,
      picture: 0,
      range: null,
      follow: true,
      playing: false,
      hoverStep: null,
      hoverPatch: null,
    };
    this.linked = "layer" in view;
    this.store.set({ ...fresh, ...view });
    return Promise.all([this.open("a", a), this.open("b", b)]);
  }

  /** Show a run as A or B (null empties the place). Resolves when its first batch is there. */
  open(which, id) {
    this.close(which);
    this.store.set({ [which]: id });
    if (!id) return Promise.resolve();
    const { store, client } = this;
    const abort = new AbortController();
    this.opened[which] = abort;
    const run = new Run(id);
    const pages = new LayerPages(
      run,
      client,
      () => store.signal("pages"),
      (error) => this.fail(error),
    );
    store.runs[which] = run;
    store.pages[which] = pages;
    abort.signal.addEventListener("abort", () => pages.close());
    return new Promise((resolve) => {
      const onBatch = (state) => (this.take(run, pages, state), resolve());
      client.follow(run, onBatch, abort.signal).catch((error) => {
        if (!abort.signal.aborted) this.lost(store.runs.a === run ? "a" : "b", id, error);
        resolve();
      });
    });
  }

  take(run, pages, state) {
    const { store } = this;
    const which = store.runs.a === run ? "a" : "b"; // by now they may have been swapped
    if (store.runs[which] !== run) return;
    if (run.meta) this.clampView(run);
    if (run.pictureFiles) this.decodeImages(run);
    if (store.state.follow && store.steps) store.show(store.steps - 1);
    if (state.error)
      this.say(
        `${which.toUpperCase()}, ${run.label || run.policy}: ${state.error.message}`,
        state.error.hint,
      );
    if (!run.live) this.ended(run, pages);
    this.recompare(!run.live);
    store.signal(which === "a" ? "runA" : "runB");
  }

  ended(run, pages) {
    if (run.steps) pages.wantAll().catch((error) => this.fail(error));
    const { signal } = pages.abort;
    this.references.learn(run, signal).catch((error) => error.status !== 404 && this.fail(error));
  }

  decodeImages(run) {
    const files = run.pictureFiles.map((bytes) => new Blob([bytes], { type: "image/png" }));
    run.pictureFiles = null;
    files.forEach((file, index) => {
      if (!file.size) return;
      createImageBitmap(file).then(
        (image) => {
          run.images[index] = image;
          this.store.signal("runA", "runB");
        },
        () => this.say("a picture of this run cannot be drawn", "its numbers are shown without it"),
      );
    });
  }

  /** Whether everything that is open is there and has ended: no further step can come. */
  get complete() {
    const { state, runs, steps } = this.store;
    return (
      steps > 0 && ["a", "b"].every((which) => !state[which] || (runs[which]?.meta && !runs[which].live))
    );
  }

  /** A view that came with a link, or from another run, may name what this run does not have. */
  clampView(run) {
    const { step, layer, head, patch, picture } = this.store.state;
    const fitting = {};
    if (layer !== "mean" && layer >= run.layers) fitting.layer = run.layers - 1;
    if (head !== "mean" && head >= run.heads) fitting.head = "mean";
    if (patch !== null && patch >= run.patches) fitting.patch = null;
    const lacks = Object.keys(fitting).join(", ");
    if (lacks && this.linked) this.say(`the link names a ${lacks} that this run does not have`, "", "info");
    this.store.set(fitting);
    if (!this.complete) return;
    const last = Math.max(this.store.pictures - 1, 0); // the other run may be the one with more
    this.store.set({ step: Math.min(step, this.store.steps - 1), picture: Math.min(picture, last) });
  }

  recompare(now) {
    const { a, b } = this.store.runs;
    const due = performance.now() - this.compared > COMPARE_EVERY;
    if (!a?.steps || !b?.steps || !(now || due)) return;
    this.compared = performance.now();
    this.store.compare.update(
      a.rows.tokens.buffer.subarray(0, a.steps),
      b.rows.tokens.buffer.subarray(0, b.steps),
    );
    this.store.signal("compare");
  }

  /**
   * The server gives a run no more. What has come of it stays in view; one that never came leaves its place.
   */
  lost(which, id, error) {
    const { store } = this;
    const run = store.runs[which];
    const gone = error.status === 404;
    const text = gone
      ? `run ${id} is not on the server: it was dropped, the server was started anew, or it is another browser’s`
      : error.message;
    const hint = gone
      ? "open its .rcr file, or ask for a link that was made with Copy link"
      : (error.hint ?? "");
    if (run?.steps) {
      run.breakOff({ message: "the server gives no more of it", hint });
      store.pages[which].stop();
      store.signal(which === "a" ? "runA" : "runB");
    } else {
      this.close(which);
      store.set({ [which]: null });
    }
    this.say(text, hint);
  }

  close(which) {
    this.opened[which]?.abort();
    this.opened[which] = null;
    this.store.runs[which] = null;
    this.store.pages[which] = null;
    this.store.compare.update([], []);
    this.store.signal(which === "a" ? "runA" : "runB", "compare");
  }

  /** Exchange A and B. */
  swap() {
    const { store } = this;
    const { a, b } = store.state;
    for (const held of [store.runs, store.pages, this.opened]) [held.a, held.b] = [held.b, held.a];
    store.set({ a: b, b: a });
    this.recompare(true);
    store.signal("runA", "runB", "compare");
  }

  /** Which of A and B can be stopped here. */
  get stoppable() {
    return Object.values(this.store.runs).filter((run) => run?.live && run.mine);
  }

  /**
   * Stop whatever of A and B still runs, and the uncompressed run that they alone were to be held against.
   */
  async stop() {
    const live = this.stoppable;
    const tell = (stopping) => {
      for (const run of live) run.stopping = stopping; // a prefill is first gone through to its end
      this.store.signal("runA", "runB");
    };
    tell(true);
    try {
      // The uncompressed run first, or it would begin its prefill in the place that the others leave.
      const idle = this.references.stopIdle(live);
      await Promise.race([idle.catch(() => {}), new Promise((resolve) => setTimeout(resolve, IDLE_FIRST))]);
      await Promise.all([...live.map(({ id }) => this.client.stop(id)), idle]);
    } catch (error) {
      tell(false);
      this.fail(error);
    }
  }
}
