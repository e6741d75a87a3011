/** The form that starts a study: what is described, by which policies, at which settings. */

import { Checks, Numbers, fieldset } from "./fields.js";
import { OwnPictures } from "./own.js";
import { isRunning } from "./desk.js";
import { make } from "../dom.js";

const DATA = {
  scenes: ["Drawn scenes", "described object by object"],
  questions: ["Short questions", "one about each drawn scene"],
  pictures: ["My pictures", "with a prompt of yours"],
};

/**
 * @param {HTMLElement} element
 * @param {import("./desk.js").StudyDesk} desk
 */
export function mountForm(element, desk) {
  let form = null;
  element.append(make("summary", {}, make("h2", { class: "study-rail-head" }, "A study of your own")));
  desk.add(() => {
    if (desk.choices && !form) {
      form = new Form(desk);
      element.append(form.element);
    }
    form?.update();
  });
}

class Form {
  /** @param {import("./desk.js").StudyDesk} desk */
  constructor(desk) {
    this.desk = desk;
    const { choices } = desk;
    this.starting = false;
    this.data = choices.data[0];
    const radios = choices.data.map((name) => this.radio(name));
    const range = (name, about, low, high, value) => ({ name, help: about, low, high, value });
    this.drawn = new Numbers([
      range("count", "images", 1, choices.max_images, Math.min(5, choices.max_images)),
      range("first", "first scene (its seed)", 0, choices.max_first, 0),
    ]);
    this.own = new OwnPictures(desk, () => this.update());
    const policies = choices.policies.map(({ name, title, summary, on }) => {
      const always = name === "full";
      return { name, text: always ? `${title}, always` : title, help: summary, on, always };
    });
    this.policies = new Checks(policies, () => this.update());
    this.settings = new Numbers([
      ...choices.settings,
      range("max_new_tokens", "most tokens of a text", 1, choices.max_tokens, choices.max_new_tokens),
    ]);
    const sweeps = choices.sweeps.map(({ name, help }) => ({ name, text: name, help, told: true }));
    this.sweeps = new Checks(sweeps, () => this.update());
    this.sum = make("p", { class: "scope-hint study-sum", role: "status" });
    this.button = make("button", { type: "submit", class: "runs-button runs-main" }, "Start the study");
    this.error = make("p", { class: "study-error", role: "alert" });
    const parts = [
      fieldset(
        "Images",
        make("div", { class: "study-radios" }, ...radios),
        this.drawn.element,
        this.own.element,
      ),
      fieldset("Policies", this.policies.element),
      make("details", {}, make("summary", {}, "Settings"), this.settings.element),
      make("details", {}, make("summary", {}, "Sweeps"), this.sweeps.element),
      this.sum,
      this.error,
      this.button,
    ];
    this.element = make("form", { class: "study-form", novalidate: true }, ...parts);
    this.element.addEventListener("submit", (event) => (event.preventDefault(), this.start()));
    this.element.addEventListener("input", () => this.update());
  }

  radio(name) {
    const [text, about] = DATA[name];
    const checked = name === this.data;
    const onchange = () => ((this.data = name), this.update());
    const input = make("input", { type: "radio", name: "study-data", value: name, checked, onchange });
    return make("label", { class: "study-check", title: about }, input, make("span", {}, text));
  }

  get values() {
    const { max_new_tokens, ...settings } = this.settings.values;
    const values = { data: this.data, policies: this.policies.chosen, sweeps: this.sweeps.chosen, settings };
    if (this.data === "pictures") Object.assign(values, this.own.values);
    else Object.assign(values, this.drawn.values);
    return this.data === "questions" ? values : { ...values, max_new_tokens };
  }

  async start() {
    if (this.starting) return;
    this.starting = true;
    this.error.textContent = "";
    this.update();
    try {
      await this.desk.start(this.values);
      if (this.data === "pictures") this.own.gone();
    } catch (error) {
      this.error.textContent = error.hint ? `${error.message}: ${error.hint}` : error.message;
    }
    this.starting = false;
    this.update();
  }

  update() {
    const { desk, data } = this;
    const running = desk.studies.some((one) => one.mine && isRunning(one));
    this.drawn.element.hidden = data === "pictures";
    this.own.element.hidden = data !== "pictures";
    this.settings.hide("max_new_tokens", data === "questions");
    this.button.disabled = this.starting || running || this.own.arriving;
    this.button.textContent = running ? "Your study is running" : "Start the study";
    const text = this.runs();
    if (this.sum.textContent !== text) this.sum.textContent = text;
  }

  /** How many runs it will be, about: a sweep may name what is there already. */
  runs() {
    const { choices } = this.desk;
    const images = this.data === "pictures" ? this.own.count : (this.drawn.values.count ?? 0);
    const policies = this.policies.chosen;
    const others = policies.filter((name) => name !== "full").length;
    const swept = choices.sweeps
      .filter(({ name }) => this.sweeps.chosen.includes(name))
      .reduce((sum, { runs, each }) => sum + runs * (each ? others : 1), 0);
    if (!images) return "choose one picture or more";
    const each = policies.length + swept;
    const total = images * each;
    const most = total > choices.max_tasks ? `; at most ${choices.max_tasks} are taken here` : "";
    return `${images} × ${each} = ${swept ? "up to " : ""}${total} runs${most}`;
  }
}
