/** The numbers of the steps under the rows. */

import { roundUp } from "./chart.js";

const HEIGHT = 18;
const APART = 48; // CSS pixels between two numbers, at least

/** @param {import("./timelines.js").Stage} stage @returns {import("./frame.js").RowSpec} */
export function stepsRow({ store, axis, look }) {
  return {
    id: "steps",
    name: "step",
    height: () => HEIGHT,
    draw(context) {
      if (!store.steps) return;
      const every = Math.max(Math.ceil(roundUp(APART / axis.column)), 1);
      context.font = look.font(10);
      context.fillStyle = look.faint;
      context.strokeStyle = look.faint;
      context.textAlign = "center";
      context.textBaseline = "bottom";
      context.lineWidth = 1;
      context.beginPath();
      for (let step = Math.ceil(axis.from / every) * every; step <= axis.to; step += every) {
        const x = Math.round(axis.centre(step)) + 0.5;
        context.moveTo(x, 0);
        context.lineTo(x, 4);
        context.fillText(String(step), x, HEIGHT - 1);
      }
      context.stroke();
    },
  };
}
