/** Where the token sequences of two runs differ: those outside their longest common subsequence. */

const LONGEST = 1500; // tokens; beyond it, tokens are compared place by place, which is linear

export class Comparison {
  constructor() {
    this.marks = { a: new Uint8Array(0), b: new Uint8Array(0) };
    /** @type {number[]} steps at which a stretch of different tokens begins, in order */
    this.stops = [];
  }

  /** Whether the token of a run at a step has no partner in the other run. */
  differs(which, step) {
    return this.marks[which][step] === 1;
  }

  /** The next (direction 1) or previous (-1) step at which a difference begins, or null. */
  stop(step, direction) {
    const ahead = this.stops.filter((at) => (direction > 0 ? at > step : at < step));
    return (direction > 0 ? ahead[0] : ahead.at(-1)) ?? null;
  }

  /** @param {ArrayLike<number>} a @param {ArrayLike<number>} b tokens of the two runs */
  update(a, b) {
    const short = Math.min(a.length, b.length);
    let head = 0;
    while (head < short && a[head] === b[head]) head += 1;
    let tail = 0;
    while (tail < short - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
    const middle = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
    const matched =
      Math.max(middle[0].length, middle[1].length) > LONGEST ? byPlace(...middle) : common(...middle);
    this.marks = {
      a: marksOf(a.length, head, middle[0].length, matched[0]),
      b: marksOf(b.length, head, middle[1].length, matched[1]),
    };
    this.stops = [...new Set([...starts(this.marks.a), ...starts(this.marks.b)])].sort(
      (left, right) => left - right,
    );
  }
}

/** 1 where a token of the middle is not matched. */
function marksOf(length, head, count, matched) {
  const marks = new Uint8Array(length);
  for (let index = 0; index < count; index += 1) marks[head + index] = matched[index] ? 0 : 1;
  return marks;
}

function starts(marks) {
  const found = [];
  for (let step = 0; step < marks.length; step += 1) if (marks[step] && !marks[step - 1]) found.push(step);
  return found;
}

function byPlace(a, b) {
  const matched = [new Uint8Array(a.length), new Uint8Array(b.length)];
  for (let index = 0; index < Math.min(a.length, b.length); index += 1) {
    if (a[index] === b[index]) matched[0][index] = matched[1][index] = 1;
  }
  return matched;
}

/** Which tokens belong to a longest common subsequence, by the textbook table of lengths. */
function common(a, b) {
  const width = b.length + 1;
  const table = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      table[i * width + j] =
        a[i] === b[j]
          ? table[(i + 1) * width + j + 1] + 1
          : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const matched = [new Uint8Array(a.length), new Uint8Array(b.length)];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      matched[0][i] = matched[1][j] = 1;
      i += 1;
      j += 1;
    } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return matched;
}
