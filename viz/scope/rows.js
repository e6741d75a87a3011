/** Rows of numbers that grow at the end: the buffer doubles, a view of the rows so far costs nothing. */
export class Rows {
  /**
   * @param {Float32ArrayConstructor|Int32ArrayConstructor|Uint8ArrayConstructor} Type
   * @param {number} width numbers per row
   */
  constructor(Type, width) {
    this.width = width;
    this.count = 0;
    this.buffer = new Type(16 * width);
  }

  /** @param {ArrayLike<number>} values whole rows */
  push(values) {
    const used = this.count * this.width;
    const needed = used + values.length;
    if (needed > this.buffer.length) {
      const grown = new this.buffer.constructor(Math.max(needed, 2 * this.buffer.length));
      grown.set(this.buffer.subarray(0, used));
      this.buffer = grown;
    }
    this.buffer.set(values, used);
    if (this.width) this.count += values.length / this.width;
  }

  row(index) {
    return this.buffer.subarray(index * this.width, (index + 1) * this.width);
  }

  at(row, column = 0) {
    return this.buffer[row * this.width + column];
  }
}
