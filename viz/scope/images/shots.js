/** The pictures of a prompt: one shot for each image, or for each frame of one that has several. */

/** @typedef {{image: number, frame: number, name: string, patches: number[]}} Shot */

export class Shots {
  /** @param {import("../run.js").Run} run whose metadata and patches have come */
  constructor(run) {
    const { patchImage, patchFrame, meta } = run;
    /** @type {Map<string, Shot>} */
    const found = new Map();
    const shotOf = (image, frame) => {
      const key = `${image} ${frame}`;
      if (!found.has(key)) found.set(key, { image, frame, patches: [] });
      return found.get(key);
    };
    meta.image_size.forEach((_, image) => shotOf(image, 0)); // one without visual tokens is a picture too
    patchImage.forEach((image, patch) => shotOf(image, patchFrame[patch]).patches.push(patch));
    /** @type {Shot[]} in the order of the prompt */
    this.list = [...found.values()].sort(
      (left, right) => left.image - right.image || left.frame - right.frame,
    );
    const moving = new Set(this.list.filter(({ frame }) => frame > 0).map(({ image }) => image));
    /** the shot of each visual token */
    this.of = new Int32Array(run.patches);
    this.list.forEach((shot, index) => {
      shot.name = `${shot.image + 1}${moving.has(shot.image) ? `, frame ${shot.frame + 1}` : ""}`;
      for (const patch of shot.patches) this.of[patch] = index;
    });
  }

  get count() {
    return this.list.length;
  }

  get several() {
    return this.count > 1;
  }

  /** The shot that a choice stands for, in a run that may have fewer; undefined without any. */
  at(index) {
    return this.list[Math.min(index, this.count - 1)];
  }

  /** The sum of a value per visual token over each shot. */
  sums(values) {
    return this.list.map(({ patches }) => patches.reduce((sum, patch) => sum + values[patch], 0));
  }
}

/** The PNG files of a batch, one an image; of runs of older files the first one alone. */
export function pictureFiles({ image, image_end: ends }) {
  const stops = ends ? Array.from(ends.data) : [image.data.length];
  return stops.map((stop, index) => image.data.slice(index ? stops[index - 1] : 0, stop));
}
