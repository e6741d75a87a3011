/** The page's side of the server's routes. Every failure is an Error with `message` and `hint`. */

const OWNER_KEY = "rcr-scope-owner";
const LONGEST_WAIT = 8; // seconds that the server may hold an answer back
const SHORTEST_ROUND = 100; // ms from one batch to the next: at most ten a second
// ms while a run waits; held back, such answers would take up the browser's few connections
const QUEUE_ROUND = 500;
const RETRY = 400; // ms after a lost connection
const LOOK = 2000; // ms from one look whether the server is back to the next
const AWAY = new Set([502, 503, 504]); // what proxies answer while the server is away

export class ServerError extends Error {
  constructor(message, hint = "", status = 0) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

/** This browser's token: whoever has it sees its runs. Kept in the browser alone. */
function ownerToken() {
  const fresh = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(18)), (byte) => byte.toString(36).padStart(2, "0")).join(
      "",
    );
  try {
    const known = localStorage.getItem(OWNER_KEY);
    if (known && /^[\w-]{16,64}$/.test(known)) return known;
    const token = fresh();
    localStorage.setItem(OWNER_KEY, token);
    return token;
  } catch {
    return fresh(); // storage is switched off: the runs last as long as the tab
  }
}

export class Client {
  constructor(root) {
    this.root = root.replace(/\/$/, "");
    this.owner = ownerToken();
    /** Keys of runs that others shared by a link, by run id. */
    this.keys = new Map();
    this.requests = 0;
    this.connected = true;
    /** What the server last said of itself. */
    this.server = {};
    this.onConnection = () => {};
  }

  /** @returns {string} the address of a route, with the key of a shared run */
  url(path, query = {}) {
    const id = /^runs\/([^/]+)/.exec(path)?.[1];
    const parameters = new URLSearchParams(query);
    if (this.keys.has(id)) parameters.set("key", this.keys.get(id));
    const text = parameters.toString();
    return `${this.root}/scope/${path}${text ? `?${text}` : ""}`;
  }

  /**
   * @param {string} path
   * @param {{query?: object, as?: "json"|"arrayBuffer"|"blob"}} options and those of fetch
   * @returns {Promise<any>} the body as asked for, else the answer
   */
  async request(path, { query, as, ...options } = {}) {
    this.requests += 1;
    try {
      const headers = { "X-Scope-Owner": this.owner, ...options.headers };
      const answer = await fetch(this.url(path, query), { ...options, headers });
      if (!answer.ok) throw await failure(answer);
      this.setConnected(true);
      return as ? await answer[as]() : answer; // a connection may also break off in the body
    } catch (error) {
      if (error.name === "AbortError") throw error;
      const refused = error instanceof ServerError;
      this.setConnected(refused);
      throw refused
        ? error
        : new ServerError("the server does not answer", "is it still running? try again once it is back");
    }
  }

  setConnected(connected) {
    if (connected === this.connected) return;
    this.connected = connected;
    this.onConnection(connected);
    if (!connected) this.lookAgain();
  }

  /** Look whether the server is back, until it is: nothing else may be asking. */
  lookAgain() {
    setTimeout(async () => {
      await this.list().catch(() => {});
      if (!this.connected) this.lookAgain();
    }, LOOK);
  }

  /** The runs, and facts about the server, which stay at hand. */
  async list() {
    const answer = await this.request("runs", { as: "json" });
    this.server = answer.server;
    return answer;
  }

  summary(id, signal) {
    return this.request(`runs/${id}`, { signal, as: "json" });
  }

  /**
   * The steps from `from` on; with `wait`, as soon as there are some or the run stands otherwise than `stamp`
   * says.
   */
  steps(id, from, { wait, stamp, signal }) {
    const query = wait ? { from, wait, stamp } : { from };
    return this.request(`runs/${id}/steps`, { query, signal, as: "arrayBuffer" });
  }

  layers(id, from, to, signal) {
    return this.request(`runs/${id}/layers`, { query: { from, to }, signal, as: "arrayBuffer" });
  }

  /** @returns {Promise<string>} an address that an img element can show, of a run's picture */
  async picture(id) {
    return URL.createObjectURL(await this.request(`runs/${id}/image`, { as: "blob" }));
  }

  open(file, label) {
    return this.request("runs", { method: "POST", body: file, query: { label }, as: "json" });
  }

  stop(id) {
    return this.request(`runs/${id}/stop`, { method: "POST", as: "json" });
  }

  async drop(id) {
    await this.request(`runs/${id}`, { method: "DELETE" });
  }

  /**
   * Keep a run up to date until it has ended. A lost connection only delays it: it asks again for what is
   * missing.
   * @param {import("./run.js").Run} run
   * @param {function(object): void} onBatch called after each batch, with its state
   * @param {AbortSignal} signal
   */
  async follow(run, onBatch, signal) {
    let wait = 0;
    while (!signal.aborted) {
      const began = performance.now();
      try {
        const batch = await this.steps(run.id, run.steps, { wait, stamp: run.stamp, signal });
        onBatch(run.append(batch));
        if (!run.live) return;
        wait = run.status === "queued" ? 0 : LONGEST_WAIT;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof ServerError) || error.status) throw error;
        wait = 0;
        await pause(RETRY, signal);
      }
      const round = run.status === "queued" ? QUEUE_ROUND : SHORTEST_ROUND;
      await pause(round - (performance.now() - began), signal);
    }
  }
}

async function failure(answer) {
  let body = {};
  try {
    body = await answer.json();
  } catch {
    // a proxy's own page, for instance: the status says enough
  }
  if (!body.error && AWAY.has(answer.status)) return new Error(`a proxy answered ${answer.status}`);
  const message = body.error ?? `the server answered ${answer.status}`;
  return new ServerError(message, body.hint ?? "", answer.status);
}

function pause(milliseconds, signal) {
  if (milliseconds <= 0 || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, milliseconds);
    signal.addEventListener("abort", over);
  });
}
