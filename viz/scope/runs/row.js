/** One run in the table: made once, then only told what is new, so that the focus stays where it is. */

import { COLUMNS, NONE, title } from "./columns.js";
import { isLive } from "../run.js";
import { make } from "../dom.js";

const cellOf = (name, ...children) => make("td", { role: "cell", class: `runs-${name}` }, ...children);

export class RunRow {
  /**
   * @param {import("./list.js").Summary} run
   * @param {import("./desk.js").Desk} desk
   * @param {import("./pictures.js").Pictures} pictures
   */
  constructor(run, desk, pictures) {
    this.desk = desk;
    this.pictures = pictures;
    this.id = run.id;
    this.radios = { a: this.radio("a"), b: this.radio("b") };
    this.image = make("img", { alt: "", width: 40, height: 40, "data-run": run.id });
    this.asked = false; // for the picture
    this.name = make("span", { class: "runs-label" });
    this.when = make("span", { class: "runs-when" });
    this.cells = COLUMNS.map(cellFor);
    this.buttons = this.actions();
    this.confirm = this.confirmation();
    this.element = make(
      "tr",
      { role: "row", class: "runs-run" },
      cellOf("choice-a", this.radios.a.closest("label")),
      cellOf("choice-b", this.radios.b.closest("label")),
      cellOf("picture", this.image),
      make("th", { role: "rowheader", scope: "row", class: "runs-name" }, this.name, this.when),
      ...this.cells,
      cellOf("actions", this.buttons.box, this.confirm),
    );
    this.update(run);
  }

  radio(which) {
    const onchange = () => this.desk.choose(which, this.id);
    const radio = make("input", { type: "radio", name: `runs-${which}`, onchange });
    const letter = which.toUpperCase();
    make("label", { title: `choose as ${letter}` }, radio, make("span", {}, letter));
    return radio;
  }

  actions() {
    const { desk, id } = this;
    const button = (text, about, onclick) =>
      make("button", { type: "button", class: "runs-action", title: about, onclick }, text);
    const open = button("Open", "open as A in the Scope; B stays", () => desk.open(id));
    const figures = button("Figures", "draw the figures of this run below", () => desk.draw(id));
    const download = button("Download", "the whole run as a .rcr file", () => desk.download(id));
    const stop = button("Stop", "end this run after the present token", () => desk.stop(id));
    const drop = button("Drop", "remove this run from the server", () => this.ask(true));
    const box = make("div", { class: "runs-buttons" }, open, figures, download, stop, drop);
    return { box, figures, download, stop, drop };
  }

  /** The question before a run is dropped, in the place of the buttons. */
  confirmation() {
    const yes = make("button", { type: "button", class: "runs-action runs-danger" }, "Drop it");
    const no = make("button", { type: "button", class: "runs-action" }, "Keep it");
    const question = make("span", {}, "Gone for good?");
    const box = make("div", { class: "runs-buttons", role: "group", hidden: true }, question, no, yes);
    box.setAttribute("aria-label", "drop this run for good?");
    yes.addEventListener("click", () => this.desk.drop(this.id));
    no.addEventListener("click", () => this.ask(false));
    box.addEventListener("keydown", (event) => event.key === "Escape" && this.ask(false));
    return box;
  }

  ask(asking) {
    this.buttons.box.hidden = asking;
    this.confirm.hidden = !asking;
    (asking ? this.confirm.querySelector("button") : this.buttons.drop).focus();
  }

  close() {
    this.pictures.forget(this.image);
    this.element.remove();
  }

  /** @param {import("./list.js").Summary} run */
  update(run) {
    const { desk } = this;
    say(this.name, run.label || "run");
    say(this.when, whenText(run));
    COLUMNS.forEach((column, at) => fill(this.cells[at], column, run));
    const state = this.cells[COLUMNS.findIndex(({ id }) => id === "state")];
    state.classList.toggle("scope-live", isLive(run));
    state.classList.toggle("runs-failed", run.status === "error");
    for (const which of ["a", "b"]) {
      this.radios[which].checked = desk.choice[which] === run.id;
      this.radios[which].setAttribute("aria-label", `${which.toUpperCase()}: ${title(run)}`);
    }
    this.buttons.download.disabled = run.steps === 0;
    this.buttons.stop.hidden = !(run.mine && isLive(run));
    this.buttons.drop.hidden = !run.mine || isLive(run);
    this.buttons.figures.setAttribute("aria-pressed", desk.drawn() === run.id);
    if (run.steps && !this.asked) {
      this.asked = true;
      this.pictures.await(this.image);
    }
  }
}

function cellFor({ id, head, number }) {
  const cell = cellOf(id);
  cell.classList.toggle("runs-number", Boolean(number));
  cell.dataset.head = head;
  return cell;
}

function fill(cell, column, run) {
  const text = column.text(run);
  say(cell, text ?? NONE);
  cell.classList.toggle("runs-missing", text === null);
  const why = column.why?.(run) ?? "";
  if (cell.title !== why) cell.title = why;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function whenText(run) {
  if (run.kind === "example") return "example";
  const when = new Date(run.created * 1000);
  const today = when.toDateString() === new Date().toDateString();
  const time = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const said = today ? time : `${when.toLocaleDateString([], { month: "short", day: "numeric" })}, ${time}`;
  return run.kind === "file" ? `file, ${said}` : said;
}
