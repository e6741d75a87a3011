/** What the tabs beside the Scope have in common: views that are told of changes, and messages that stay. */

export class Desk {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.client = session.client;
    /** @type {{text: string, hint: string}[]} messages that stay until they are dismissed */
    this.notices = [];
    this.views = [];
  }

  /** @param {function(): void} view called after every change */
  add(view) {
    this.views.push(view);
    view();
  }

  changed() {
    for (const view of this.views) view();
  }

  say(text, hint = "") {
    this.notices.push({ text, hint });
    this.changed();
  }

  dismiss(notice) {
    this.notices = this.notices.filter((one) => one !== notice);
    this.changed();
  }

  /** Run something that may fail; what goes wrong is told, with what it was about. */
  async trying(act, about = "") {
    try {
      await act();
    } catch (error) {
      this.say(about ? `${about}: ${error.message}` : error.message, error.hint);
    }
  }
}
