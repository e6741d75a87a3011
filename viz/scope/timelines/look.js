/** Colours and fonts of the rows, read from the theme once and again when it changes. */

import { themeColours } from "../palette.js";

const SHADES = 64;

export class Look {
  /** @param {HTMLElement} element whose custom properties count */
  constructor(element) {
    this.element = element;
    this.probe = document.createElement("canvas").getContext("2d");
    this.version = 0; // grows with every reading: what is drawn from it is out of date
  }

  read() {
    const style = getComputedStyle(this.element);
    Object.assign(this, themeColours(this.element));
    // words in a run's colour need more contrast than its lines do
    const read = (name) => style.getPropertyValue(name).trim();
    this.words = { a: read("--scope-a"), b: read("--scope-b") };
    this.family = style.fontFamily;
    this.fireBytes = this.bytes(this.fire);
    this.shades = this.ramp();
    this.hatch = this.hatching();
    this.version += 1;
  }

  font(size, weight = "") {
    return `${weight} ${size}px ${this.family}`;
  }

  /** Any CSS colour as three bytes. */
  bytes(colour) {
    this.probe.fillStyle = "#000000";
    this.probe.fillStyle = colour; // reads back as #rrggbb, whatever it was written as
    const hex = this.probe.fillStyle;
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  }

  /** Greys of the page's own hue: the ground with more and more of the faint text in it. */
  ramp() {
    const [ground, ink] = [this.bytes(this.ground), this.bytes(this.faint)];
    return Array.from({ length: SHADES }, (_, index) => {
      const share = 0.07 + (0.58 * index) / (SHADES - 1);
      return ground.map((value, channel) => Math.round(value + share * (ink[channel] - value)));
    });
  }

  /** The shade of a drift. By its root: tau is a few hundredths, and must not look like nothing. */
  shade(drift) {
    return this.shades[Math.round(Math.sqrt(Math.min(Math.max(drift, 0), 1)) * (SHADES - 1))];
  }

  hatching() {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const context = tile.getContext("2d");
    context.strokeStyle = this.line;
    context.beginPath();
    for (const shift of [-6, 0, 6]) {
      context.moveTo(shift - 1, 7);
      context.lineTo(shift + 7, -1);
    }
    context.stroke();
    return this.probe.createPattern(tile, "repeat");
  }
}
