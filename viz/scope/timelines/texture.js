/** The cells of a raster, a pixel each: layers down, steps along. New steps are added to what is there. */

const FIRST = 128; // columns

export class Texture {
  constructor() {
    this.run = null;
    this.canvas = null;
    this.squeezed = document.createElement("canvas");
  }

  /** Bring the pixels up to date with a run. */
  update(run, look) {
    if (run !== this.run || look.version !== this.version || run.layers !== this.canvas?.height) {
      Object.assign(this, { run, version: look.version, done: 0, canvas: null });
    }
    if (this.done === run.steps) return;
    this.makeRoom(run);
    const count = run.steps - this.done;
    const image = this.context.createImageData(count, run.layers);
    for (let layer = 0; layer < run.layers; layer += 1) {
      for (let index = 0; index < count; index += 1) {
        paint(image.data, 4 * (layer * count + index), cell(run, this.done + index, layer, look));
      }
    }
    this.context.putImageData(image, this.done, 0);
    this.done = run.steps;
  }

  makeRoom(run) {
    if (this.canvas && this.canvas.width >= run.steps) return;
    const grown = document.createElement("canvas");
    grown.height = run.layers;
    grown.width = Math.max(FIRST, 2 ** Math.ceil(Math.log2(run.steps)));
    this.context = grown.getContext("2d");
    if (this.canvas) this.context.drawImage(this.canvas, 0, 0);
    this.canvas = grown;
  }

  /**
   * Draw the steps of a span into a box. Columns below a pixel are smoothed into each other, not left out.
   */
  draw(context, [first, last], width, height) {
    const count = last - first + 1;
    const pixels = Math.max(Math.round(width * (window.devicePixelRatio || 1)), 1);
    context.imageSmoothingEnabled = false;
    if (count <= pixels) {
      context.drawImage(this.canvas, first, 0, count, this.canvas.height, 0, 0, width, height);
      return;
    }
    const { squeezed } = this;
    squeezed.width = pixels; // also clears it
    squeezed.height = this.canvas.height;
    const small = squeezed.getContext("2d");
    small.imageSmoothingQuality = "high"; // less would skip columns where many share a pixel
    small.drawImage(this.canvas, first, 0, count, squeezed.height, 0, 0, pixels, squeezed.height);
    context.drawImage(squeezed, 0, 0, width, height);
  }
}

/** The colour of a layer-step; null without a decision. */
function cell(run, step, layer, look) {
  if (!run.decided(step, layer)) return null;
  return run.fired(step, layer) ? look.fireBytes : look.shade(run.rows.drift.at(step, layer));
}

function paint(data, at, colour) {
  if (!colour) return;
  data[at] = colour[0];
  data[at + 1] = colour[1];
  data[at + 2] = colour[2];
  data[at + 3] = 255;
}
