/** The axis of steps that all rows share: columns of one width, the first at the end of the gutter. */

export const GUTTER = 84; // CSS pixels for a row's name, unit and scale
const MARGIN = 2; // on the right, so that a ring around the last column is not cut
const WIDEST = 56; // a short caption does not fill the page with a few broad columns

export class Axis {
  constructor() {
    Object.assign(this, { from: 0, to: 0, steps: 0, width: 0, column: WIDEST });
  }

  /**
   * @param {?[number, number]} range steps to show, the last included; null for all of them
   * @param {number} steps
   * @param {number} width of the rows with their gutter, in CSS pixels
   */
  update(range, steps, width) {
    const last = Math.max(steps - 1, 0);
    this.steps = steps;
    this.from = Math.min(range?.[0] ?? 0, last);
    this.to = Math.max(Math.min(range?.[1] ?? last, last), this.from);
    this.width = Math.max(width - GUTTER - MARGIN, 0);
    this.column = Math.min(this.width / (this.to - this.from + 1), WIDEST);
  }

  /** Left edge of a step's column, from the end of the gutter. */
  x(step) {
    return (step - this.from) * this.column;
  }

  centre(step) {
    return this.x(step) + this.column / 2;
  }

  /** The step at an x, held within what is shown. */
  step(x) {
    const step = this.from + Math.floor(x / this.column);
    return Math.min(Math.max(step, this.from), this.to);
  }

  shows(step) {
    return step >= this.from && step <= this.to && step < this.steps;
  }

  /** First and last shown step that a run has; the last is below the first where there is none. */
  span(run) {
    return [this.from, Math.min(this.to, (run?.steps ?? 0) - 1)];
  }
}
