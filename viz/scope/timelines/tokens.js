/** The tokens of A and of B, each in the column of its step: as many as fit, the current one always. */

import { tokenText } from "../words.js";
import { describeRuns, shownRuns } from "./chart.js";
import { WORD_SIZE, Words, shortened } from "./words.js";

const LINE = 19; // CSS pixels
const WORDS_FIT = 36; // columns from this width on show each its own word, shortened if need be
const GAP = 6;
const SMALLEST = 14; // room in which a shortened word still says something

/** Height of the row for the runs that there are. */
export const tokensHeight = (store) => Math.max(shownRuns(store).length, 1) * LINE + 4;

/** @param {import("./timelines.js").Stage} stage @returns {import("./frame.js").RowSpec} */
export function tokensRow(stage) {
  const { store, axis, look } = stage;
  const words = new Words(look);
  return {
    id: "tokens",
    name: "tokens",
    term: "step",
    keys: ["step", "compare"],
    height: () => tokensHeight(store),
    draw(context, { step }) {
      context.textBaseline = "middle";
      context.textAlign = "left";
      shownRuns(store).forEach(([which, run], index) => {
        const line = new Line(context, stage, which, words.of(context, run), (index + 0.5) * LINE + 2);
        line.draw(axis.span(run), axis.shows(step) && step < run.steps ? step : null);
      });
    },
    describe: (step) => describeRuns(store, step, (run) => `‘${tokenText(run, step)}’`),
  };
}

class Line {
  constructor(context, { store, axis, look }, which, words, y) {
    Object.assign(this, { context, axis, look, which, words, y });
    this.colour = look.words[which];
    this.differs = (step) => store.compare.differs(which, step);
  }

  /** @param {[number, number]} span @param {?number} step the current one, null where it is out of sight */
  draw(span, step) {
    const current = step === null ? null : this.currentBox(step);
    this.context.font = this.look.font(WORD_SIZE);
    this.context.fillStyle = this.colour;
    if (this.axis.column >= WORDS_FIT) this.drawEach(span, current);
    else this.drawFitting(span, current);
    if (current) this.drawCurrent(current);
  }

  currentBox(step) {
    const { context, axis } = this;
    const { text } = this.words[step];
    context.font = this.look.font(WORD_SIZE, "bold");
    const { width } = context.measureText(text);
    const x = Math.max(Math.min(axis.centre(step) - width / 2, axis.width - width), 0);
    return { step, text, x, end: x + width };
  }

  /** Every word in its own column, in what the current one leaves of it. */
  drawEach([first, last], current) {
    const { axis } = this;
    for (let step = first; step <= last; step += 1) {
      if (step === current?.step) continue;
      let left = axis.x(step) + 1.5;
      let right = axis.x(step + 1) - 1.5;
      if (current && step < current.step) right = Math.min(right, current.x - GAP);
      if (current && step > current.step) left = Math.max(left, current.end + GAP);
      if (right - left < SMALLEST) continue;
      const { text, width } = shortened(this.context, this.words[step], right - left);
      this.write(step, text, (left + right - width) / 2, width);
    }
  }

  /**
   * From the left, each word whose column leaves a gap to the word before it, and to the current one. Words
   * begin at their columns here: were they centred, short ones would crowd out the long.
   */
  drawFitting([first, last], current) {
    const { axis, words } = this;
    let end = -GAP;
    for (let step = first; step <= last; step += 1) {
      const x = axis.x(step);
      const { text, width, readable } = words[step];
      if (x < end + GAP || !readable || x + width > axis.width) continue;
      if (current && x < current.end + GAP && x + width > current.x - GAP) continue;
      this.write(step, text, x, width);
      end = x + width;
    }
  }

  drawCurrent({ step, text, x, end }) {
    const { context, look, y } = this;
    context.fillStyle = look.ground;
    context.fillRect(x - 3, y - LINE / 2, end - x + 6, LINE);
    context.fillStyle = this.colour;
    context.font = look.font(WORD_SIZE, "bold");
    this.write(step, text, x, end - x);
  }

  write(step, text, x, width) {
    const { context, y } = this;
    context.fillText(text, x, y);
    if (!this.differs(step)) return;
    context.strokeStyle = this.colour;
    context.lineWidth = 1.5;
    context.setLineDash([1.5, 2]);
    context.beginPath();
    context.moveTo(x, y + 8.25);
    context.lineTo(x + width, y + 8.25);
    context.stroke();
    context.setLineDash([]);
  }
}
