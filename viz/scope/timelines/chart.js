/** What the rows with a scale share: rounded scales, lines along the steps, labels in the gutter. */

/** The next round number from a value up: 1, 2, 2.5 or 5 times a power of ten. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((round) => round >= value * (1 - 1e-9));
}

/** The largest finite value of some numbers between two indices, both included; 0 without any. */
export function largest(values, first, last) {
  let most = 0;
  for (let index = first; index <= last; index += 1) if (values[index] > most) most = values[index];
  return most;
}

/**
 * Faint lines across a row, each with its label in the gutter.
 * @param {CanvasRenderingContext2D} context with its origin at the end of the gutter
 * @param {import("./timelines.js").Stage} stage
 * @param {{y: number, label: string, at?: CanvasTextBaseline}[]} marks
 */
export function drawScale(context, { axis, look }, marks) {
  context.strokeStyle = look.line;
  context.fillStyle = look.faint;
  context.font = look.font(10);
  context.textAlign = "right";
  context.lineWidth = 1;
  for (const { y, label, at = "middle" } of marks) {
    context.textBaseline = at;
    context.fillText(label, -6, y);
    context.beginPath();
    context.moveTo(0, Math.round(y) + 0.5);
    context.lineTo(axis.width, Math.round(y) + 0.5);
    context.stroke();
  }
}

/**
 * A line from column to column; broken where a number is missing.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./axis.js").Axis} axis
 * @param {ArrayLike<number>} values by step
 * @param {[number, number]} span first and last step
 * @param {function(number): number} y of a value
 */
export function drawLine(context, axis, values, [first, last], y, { colour, dash = [], width = 1.5 }) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.setLineDash(dash);
  context.beginPath();
  let open = false;
  for (let step = first; step <= last; step += 1) {
    const value = values[step];
    if (Number.isNaN(value)) {
      open = false;
      continue;
    }
    if (open) context.lineTo(axis.centre(step), y(value));
    else context.moveTo(axis.centre(step), y(value));
    open = true;
  }
  context.stroke();
  context.setLineDash([]);
}

/** The runs that there are, A first. @returns {["a"|"b", import("../run.js").Run][]} */
export function shownRuns(store) {
  return ["a", "b"].map((which) => [which, store.runs[which]]).filter(([, run]) => run?.steps);
}

/** A line for each run that reached a step, after the run's letter and the step. */
export function describeRuns(store, step, describe) {
  return shownRuns(store)
    .map(([which, run]) => {
      const name = which.toUpperCase();
      if (step >= run.steps) return `${name} · ended before step ${step}`;
      return `${name} · step ${step} · ${describe(run, which)}`;
    })
    .join("\n");
}
