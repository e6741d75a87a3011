/** Fields of the form: numbers and options with their range, and boxes to tick. */

import { make } from "../dom.js";

export function fieldset(legend, ...children) {
  return make("fieldset", { class: "study-fieldset" }, make("legend", {}, legend), ...children);
}

/**
 * @typedef {Object} Field
 * @property {string} name
 * @property {string} help
 * @property {number|string} value at first
 * @property {number} [low]
 * @property {number} [high]
 * @property {string[]} [options]
 */

/** Fields by name. What is left empty is not among the values: the server then takes its own. */
export class Numbers {
  /** @param {Field[]} fields */
  constructor(fields) {
    this.inputs = new Map(fields.map((field) => [field.name, control(field)]));
    const labels = fields.map(({ name, help }) => {
      const text = make("span", { class: "study-field-name" }, name);
      const about = make("span", { class: "study-field-help" }, help.replaceAll("`", ""));
      return make("label", { class: "study-field" }, make("span", {}, text, about), this.inputs.get(name));
    });
    this.element = make("div", { class: "study-fields" }, ...labels);
  }

  get values() {
    const found = {};
    for (const [name, input] of this.inputs) {
      if (input.value === "" && !input.validity?.badInput) continue;
      const number = Number(input.value);
      found[name] = input.tagName === "SELECT" || Number.isNaN(number) ? input.value : number;
    }
    return found;
  }

  hide(name, hidden) {
    this.inputs.get(name).closest("label").hidden = hidden;
  }
}

function control({ name, options, value, low, high }) {
  if (!options) return make("input", { type: "number", name, step: "any", min: low, max: high, value });
  const items = options.map((option) => make("option", { value: option }, option));
  const select = make("select", { name }, ...items);
  select.value = value;
  return select;
}

/** Boxes to tick, with a way to tick all. */
export class Checks {
  /**
   * @param {{name: string, text: string, help: string, on?: boolean, always?: boolean, told?: boolean}[]} options
   * @param {function(): void} onChange
   */
  constructor(options, onChange) {
    this.inputs = new Map();
    const labels = options.map(({ name, text, help, on, always, told }) => {
      const input = make("input", { type: "checkbox", value: name, checked: on, disabled: always });
      input.addEventListener("change", onChange);
      this.inputs.set(name, input);
      const about = told && make("span", { class: "study-field-help" }, help);
      return make(
        "label",
        { class: "study-check", title: help },
        input,
        make("span", {}, text, about || null),
      );
    });
    this.element = make("div", { class: "study-checks" }, ...labels);
    if (options.some(({ told }) => told)) return;
    const all = (on) => () => {
      for (const input of this.inputs.values()) if (!input.disabled) input.checked = on;
      onChange();
    };
    const button = (text, on) =>
      make("button", { type: "button", class: "runs-action", onclick: all(on) }, text);
    this.element.append(make("div", { class: "study-all" }, button("all", true), button("none", false)));
  }

  get chosen() {
    return [...this.inputs].filter(([, input]) => input.checked).map(([name]) => name);
  }
}
