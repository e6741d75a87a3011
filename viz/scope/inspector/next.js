/** The likeliest next tokens of a step, with their probabilities as bars. */

import { make } from "../dom.js";
import { percent, visible } from "../words.js";

export class NextTokens {
  constructor() {
    this.body = make("tbody", {});
    const caption = make("caption", {}, "likeliest tokens at this step");
    this.element = make("table", { class: "scope-next" }, caption, this.body);
    this.lines = [];
  }

  draw(run, step) {
    const probabilities = Array.from(run.rows.top_logprob.row(step), Math.exp);
    const ids = run.rows.top_ids.row(step);
    const names = run.topText[step];
    while (this.lines.length < ids.length) this.addLine();
    this.lines.forEach((line, index) => {
      line.element.hidden = index >= ids.length;
      if (index >= ids.length) return;
      const chosen = ids[index] === run.rows.tokens.at(step);
      line.word.textContent = names ? visible(names[index]) : `token ${ids[index]}`;
      line.element.classList.toggle("scope-chosen", chosen);
      line.number.textContent = percent(probabilities[index], 1);
      line.bar.style.setProperty("--share", probabilities[index].toFixed(4));
    });
  }

  addLine() {
    const word = make("th", { scope: "row" });
    const bar = make("i", {});
    const number = make("td", {});
    const element = make("tr", {}, word, make("td", { class: "scope-next-bar" }, bar), number);
    this.body.append(element);
    this.lines.push({ element, word, bar, number });
  }
}
