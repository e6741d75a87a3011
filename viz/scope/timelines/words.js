/** The words of a run as the token row shows them, measured once. */

import { tokenText } from "../words.js";

export const WORD_SIZE = 12; // CSS pixels

/** @typedef {{text: string, width: number, readable: boolean}} Word readable: not punctuation alone */

export class Words {
  /** @param {import("./look.js").Look} look */
  constructor(look) {
    this.look = look;
    this.known = new WeakMap(); // Run -> {version, stopReason, words}
  }

  /** @returns {Word[]} one per step of the run; leaves the context with the font that they are measured in */
  of(context, run) {
    const { look } = this;
    context.font = look.font(WORD_SIZE);
    let held = this.known.get(run);
    // the last token reads differently once the run has stopped there
    if (held?.version !== look.version || held.stopReason !== run.stopReason) {
      held = { version: look.version, stopReason: run.stopReason, words: [] };
      this.known.set(run, held);
    }
    for (let step = held.words.length; step < run.steps; step += 1) {
      const text = tokenText(run, step).trim() || "·";
      held.words.push({ text, width: context.measureText(text).width, readable: /[\p{L}\p{N}]/u.test(text) });
    }
    return held.words;
  }
}

/** A word shortened to a room, its end replaced by an ellipsis; the context has its font. */
export function shortened(context, word, room) {
  if (word.width <= room) return word;
  let { text, width } = word;
  while (width > room && text.length > 1) {
    text = text.slice(0, -1);
    width = context.measureText(`${text}…`).width;
  }
  return { ...word, text: `${text}…`, width };
}
