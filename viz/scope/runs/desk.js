/** What a person can do with the runs, and what they have chosen; the views of the tab draw it. */

import { RunList } from "./list.js";
import { saveRoute } from "../downloads.js";
import { showRoom } from "../rooms.js";
import { Desk as Shared } from "../desk.js";

export const MAX_FILE = 512 * 2 ** 20; // bytes that the server takes of one file

export class Desk extends Shared {
  /** @param {import("../session.js").Session} session */
  constructor(session, signal) {
    super(session);
    this.list = new RunList(session.client);
    this.list.onChange = () => this.changed();
    const { a, b } = session.store.state;
    /** Chosen by the radios; follows the Scope whenever that opens other runs. */
    this.choice = { a, b };
    /** @type {string} whose figures are drawn: "a", "b", or the id of a run */
    this.figures = "a";
    /** @type {?File} under way to the server */
    this.arriving = null;
    const follow = (state, changed) => (changed.has("a") || changed.has("b")) && this.follow(state);
    signal.addEventListener("abort", session.store.listen(follow));
  }

  follow({ a, b }) {
    this.choice = { a, b };
    const known = [a, b].every((id) => !id || this.list.get(id));
    if (!known && this.list.visible) this.list.refresh();
    else this.changed();
  }

  /** @param {"a"|"b"} which */
  choose(which, id) {
    this.choice = { ...this.choice, [which]: id };
    this.changed();
  }

  /** Whether the Scope shows something else than what is chosen. */
  get differs() {
    const { a, b } = this.session.store.state;
    return a !== this.choice.a || b !== this.choice.b;
  }

  /** Show the chosen pair in the Scope. A pair that is open already keeps its view. */
  show() {
    const { a, b } = this.choice;
    if (this.differs) this.session.openPair(a, b);
    showRoom("Scope");
  }

  /** Show a run as A; B stays. */
  open(id) {
    this.choice = { a: id, b: this.session.store.state.b };
    this.show();
  }

  /** The run whose figures are drawn: its id, or null. */
  drawn() {
    const { figures, choice } = this;
    return figures in choice ? choice[figures] : figures;
  }

  draw(figures) {
    this.figures = figures;
    this.changed();
  }

  download(id) {
    return this.trying(() => saveRoute(this.client, `runs/${id}/trace.rcr`));
  }

  table(id, name) {
    return this.trying(() => saveRoute(this.client, `runs/${id}/tables/${name}.csv`));
  }

  stop(id) {
    return this.trying(async () => {
      this.list.take(await this.client.stop(id));
      await this.list.refresh();
    });
  }

  /** The page lets go of a run first, so that nothing asks for what is no longer there. */
  async drop(id) {
    const takeBack = this.letGo(id);
    await this.trying(async () => {
      try {
        await this.client.drop(id);
      } catch (error) {
        takeBack();
        throw error;
      }
    });
    await this.list.refresh();
  }

  /** @returns {function(): void} shows the run again, where and as it was */
  letGo(id) {
    const { session, choice, figures, list } = this;
    const run = list.get(id);
    const shown = ["a", "b"].filter((which) => session.store.state[which] === id);
    this.choice = { a: choice.a === id ? null : choice.a, b: choice.b === id ? null : choice.b };
    if (figures === id) this.figures = "a";
    for (const which of shown) session.open(which, null);
    list.remove(id);
    return () => {
      if (run) list.take(run);
      for (const which of shown) if (!session.store.state[which]) session.open(which, id);
      this.choice = { a: this.choice.a ?? choice.a, b: this.choice.b ?? choice.b }; // or what was chosen since
      this.figures = figures;
      this.changed();
    };
  }

  /**
   * Open files, one after the other: the first becomes A, of several the second becomes B.
   * @param {File[]} files
   */
  async openFiles(files) {
    const opened = [];
    for (const file of files) {
      if (file.size > MAX_FILE) {
        this.say(`${file.name} has more than 512 MiB`, "that is the most a trace may have");
      } else {
        await this.trying(async () => opened.push(await this.send(file)), file.name);
      }
    }
    this.arriving = null;
    if (opened.length) {
      this.choice = { a: opened[0].id, b: opened[1]?.id ?? this.session.store.state.b };
      this.show();
    }
    this.changed();
  }

  async send(file) {
    this.arriving = file;
    this.changed();
    const run = await this.client.open(file, file.name);
    this.list.turn += 1;
    this.list.take(run);
    return run;
  }
}
