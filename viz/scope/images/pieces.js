/** The text of a prompt as pieces, and how much of each is kept at a step. */

/**
 * @typedef {Object} Piece
 * @property {"text"|"image"} kind
 * @property {string} text
 * @property {number} start    prompt index of its first token
 * @property {number} count    how many tokens it stands for
 * @property {boolean} fixed   whether it lies in the window, which is never evicted
 */

/** @param {import("../run.js").Run} run @returns {Piece[]} */
export function piecesOf(run) {
  const { prompt_pieces: pieces, prefix_length: prefix } = run.meta;
  return pieces.map((piece) => ({ ...piece, fixed: piece.start >= prefix }));
}

export class KeptPieces {
  /** @param {import("../run.js").Run} run @param {Piece[]} pieces */
  constructor(run, pieces) {
    Object.assign(this, { run, pieces });
    this.pieceOf = new Int32Array(run.meta.prompt_length).fill(-1);
    pieces.forEach(({ kind, start, count }, index) => {
      if (kind === "text") this.pieceOf.fill(index, start, start + count);
    });
    this.now = new Float32Array(pieces.length);
    this.before = new Float32Array(pieces.length);
  }

  /** As `keptShares` of patches: the share of the shown (layer, KV head) pairs that keep each piece of text. */
  update(step, view) {
    this.count(step, view, this.now);
    this.count(Math.max(step - 1, 0), view, this.before);
  }

  count(step, { layer, head }, into) {
    const { run, pieces, pieceOf } = this;
    into.fill(0);
    let [pairs, whole] = [0, 0];
    const heads = head === "mean" ? Array.from({ length: run.heads }, (_, one) => one) : [head];
    for (const one of run.chosenLayers(layer)) {
      for (const each of heads) {
        pairs += 1;
        const chosen = run.selection(step, one, each);
        if (!chosen) whole += 1;
        else for (const entry of chosen) if (pieceOf[entry] >= 0) into[pieceOf[entry]] += 1;
      }
    }
    for (let index = 0; index < into.length; index += 1)
      into[index] = pieces[index].fixed
        ? 1
        : (into[index] / pieces[index].count + whole) / Math.max(pairs, 1);
  }
}

/** Layers that keep an entry of the prefix at a step, with how many of the KV heads do. */
export function keepers(run, step, entry, layers = run.managedLayers) {
  return layers
    .map((layer) => {
      const heads = Array.from({ length: run.heads }, (_, head) => run.selection(step, layer, head));
      const count = heads.filter((chosen) => !chosen || chosen.includes(entry)).length;
      return { layer, count, of: run.heads };
    })
    .filter(({ count }) => count > 0);
}

export const keeperText = ({ layer, count, of }) =>
  count === of ? `layer ${layer}` : `layer ${layer} (${count} of ${of} KV heads)`;
