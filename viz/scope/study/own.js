/** A person's own pictures for a study: sent one by one, held on the server for that study alone. */

import { make } from "../dom.js";

const MAX_FILE = 16 * 2 ** 20; // bytes that the server takes of one picture

export class OwnPictures {
  /**
   * @param {import("./desk.js").StudyDesk} desk
   * @param {function(): void} onChange
   */
  constructor(desk, onChange) {
    this.desk = desk;
    this.onChange = onChange;
    this.most = desk.choices.max_pictures;
    /** @type {{name: string, picture: string}[]} */
    this.held = [];
    this.arriving = false;
    this.input = make("input", { type: "file", accept: "image/*", multiple: true, hidden: true });
    this.input.addEventListener("change", () => {
      const files = [...this.input.files];
      this.input.value = "";
      this.send(files);
    });
    const onclick = () => this.input.click();
    this.button = make("button", { type: "button", class: "runs-action", onclick }, "Choose pictures");
    this.names = make("ul", { class: "study-pictures" });
    this.said = make("p", { class: "scope-hint", role: "status" });
    this.prompt = make("textarea", { rows: 3 });
    this.prompt.value = desk.choices.prompt;
    const label = make(
      "label",
      { class: "study-prompt" },
      make("span", { class: "study-field-name" }, "prompt"),
    );
    label.append(this.prompt);
    this.element = make("div", {}, this.button, this.input, this.said, this.names, label);
    this.draw("");
  }

  get count() {
    return this.held.length;
  }

  get values() {
    return { pictures: this.held.map(({ picture }) => picture), prompt: this.prompt.value };
  }

  /** The study has them now. */
  gone() {
    this.held = [];
    this.draw("");
    this.onChange();
  }

  async send(files) {
    const wrong = [];
    this.arriving = true;
    for (const file of files) {
      this.draw(`sending ${file.name}`);
      this.onChange();
      if (this.count >= this.most) wrong.push(`${file.name}: a study takes ${this.most} pictures`);
      else if (file.size > MAX_FILE) wrong.push(`${file.name} has more than 16 MB`);
      else await this.sendOne(file).catch(({ message }) => wrong.push(`${file.name}: ${message}`));
    }
    this.arriving = false;
    this.draw(wrong.join(". "));
    this.onChange();
  }

  async sendOne(file) {
    this.held.push({ name: file.name, picture: await this.desk.sendPicture(file) });
  }

  remove(one) {
    this.held = this.held.filter((other) => other !== one);
    this.desk.forgetPicture(one.picture);
    this.draw("");
    this.onChange();
    this.button.focus();
  }

  draw(said) {
    this.said.textContent = said || (this.count ? "" : `up to ${this.most}; held for the study alone`);
    this.button.disabled = this.arriving;
    const items = this.held.map((one) => {
      const about = { type: "button", class: "runs-action", "aria-label": `remove ${one.name}` };
      const button = make("button", { ...about, onclick: () => this.remove(one) }, "×");
      return make("li", {}, make("span", {}, one.name), button);
    });
    this.names.replaceChildren(...items);
  }
}
