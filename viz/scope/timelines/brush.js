/** The window over the overview: drawn, moved, resized at its edges; a double click shows the whole run. */

import { make } from "../dom.js";
import { DRAWN_AFTER } from "./frame.js";

const FEWEST = 2; // steps in a range
const DOUBLE = 500; // ms within which two presses are a double click
const KEYS = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -10,
  PageUp: 10,
  Home: -Infinity,
  End: Infinity,
};

export class Brush {
  /**
   * @param {import("./timelines.js").Stage} stage
   * @param {HTMLElement} plot the strip, as wide as the axis of the whole run
   * @param {function} addView
   */
  constructor(stage, plot, addView) {
    Object.assign(this, { stage, plot, drag: null });
    this.before = {}; // where the step was before a press that may be the first of a double click
    this.pressed = -Infinity;
    this.window = make("div", { class: "timelines-brush" });
    this.handles = [this.handle(0, "first shown step"), this.handle(1, "last shown step")];
    plot.append(this.window, ...this.handles);
    const { signal } = stage;
    plot.addEventListener("pointerdown", (event) => this.press(event), { signal });
    plot.addEventListener("pointermove", (event) => this.move(event), { signal });
    plot.addEventListener("pointerup", (event) => this.release(event), { signal });
    plot.addEventListener("pointercancel", () => (this.drag = null), { signal });
    plot.addEventListener("dblclick", () => stage.store.set({ range: null, ...this.before }), { signal });
    addView(stage, DRAWN_AFTER, () => this.draw());
  }

  handle(edge, label) {
    const attributes = { class: "timelines-handle", role: "slider", tabindex: "0", "aria-label": label };
    const element = make("div", attributes);
    element.addEventListener("keydown", (event) => this.key(event, edge), { signal: this.stage.signal });
    return element;
  }

  get last() {
    return Math.max(this.stage.store.steps - 1, 0);
  }

  get range() {
    const { axis } = this.stage;
    return [axis.from, axis.to];
  }

  /** Set the range, moved into the run; one that covers the run is none. */
  show(from, to) {
    const { last, stage } = this;
    const low = Math.max(Math.min(from, last - FEWEST + 1), 0);
    const high = Math.min(Math.max(to, low + FEWEST - 1), last);
    stage.store.set({ range: low === 0 && high === last ? null : [low, high], follow: false });
  }

  /** Move the range without changing its length. */
  moveTo(from) {
    const [low, high] = this.range;
    const start = Math.max(Math.min(from, this.last - (high - low)), 0);
    this.show(start, start + high - low);
  }

  moveEdge(edge, step) {
    const [low, high] = this.range;
    if (edge) this.show(low, Math.max(step, low + FEWEST - 1));
    else this.show(Math.min(step, high - FEWEST + 1), high);
  }

  stepAt(event) {
    return this.stage.whole.step(event.clientX - this.plot.getBoundingClientRect().left);
  }

  press(event) {
    const { store } = this.stage;
    if (event.button !== 0 || store.steps < FEWEST) return;
    const { step: at, follow } = store.state;
    if (event.timeStamp - this.pressed > DOUBLE) this.before = { step: at, follow };
    this.pressed = event.timeStamp;
    const step = this.stepAt(event);
    const edge = this.handles.indexOf(event.target);
    this.plot.setPointerCapture(event.pointerId);
    const onWindow = event.target === this.window && store.state.range !== null;
    if (edge >= 0) this.drag = { kind: "edge", edge };
    else if (onWindow) this.drag = { kind: "move", grip: step - this.range[0], at: step };
    else this.drag = { kind: "new", at: step };
  }

  move(event) {
    const { drag } = this;
    if (!drag) return;
    const step = this.stepAt(event);
    if (step !== drag.at) drag.moved = true;
    if (drag.kind === "edge") this.moveEdge(drag.edge, step);
    else if (drag.kind === "move") this.moveTo(step - drag.grip);
    else if (drag.moved) this.show(Math.min(drag.at, step), Math.max(drag.at, step));
  }

  /** A press without a drag goes to its step, and brings it into view. */
  release(event) {
    const { drag } = this;
    this.drag = null;
    if (!drag || drag.kind === "edge" || drag.moved) return;
    const step = this.stepAt(event);
    const [low, high] = this.range;
    this.stage.store.goTo(step);
    if (step < low || step > high) this.moveTo(step - Math.floor((high - low) / 2));
  }

  key(event, edge) {
    const by = KEYS[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // the arrows of the page move the step
    const far = event.shiftKey ? 10 * by : by;
    this.moveEdge(edge, Math.min(Math.max(this.range[edge] + far, 0), this.last));
  }

  draw() {
    const { stage, window: box, handles, last } = this;
    const [low, high] = this.range;
    const [left, right] = [stage.whole.x(low), stage.whole.x(high + 1)];
    box.hidden = !stage.store.steps;
    box.classList.toggle("timelines-brush-part", stage.store.state.range !== null);
    box.style.left = `${left}px`;
    box.style.width = `${right - left}px`;
    handles.forEach((handle, edge) => {
      handle.hidden = stage.store.steps < FEWEST;
      handle.style.transform = `translateX(${edge ? right : left}px)`;
      handle.setAttribute("aria-valuemin", 0);
      handle.setAttribute("aria-valuemax", last);
      handle.setAttribute("aria-valuenow", this.range[edge]);
      handle.setAttribute("aria-valuetext", `step ${this.range[edge]} of ${last}`);
    });
  }
}
