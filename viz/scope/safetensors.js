/** A reader of safetensors files: typed arrays over the buffer, nothing is copied. */

const TYPES = { F32: Float32Array, I32: Int32Array, U32: Uint32Array, U16: Uint16Array, U8: Uint8Array };

/**
 * @typedef {{data: Float32Array|Int32Array|Uint32Array|Uint16Array|Uint8Array, shape: number[]}} Tensor
 * @param {ArrayBuffer} buffer a whole file
 * @returns {{metadata: Object<string, string>, arrays: Object<string, Tensor>}}
 */
export function readSafetensors(buffer) {
  if (buffer.byteLength < 8) throw new Error("the answer of the server is cut short");
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (length > buffer.byteLength - 8) throw new Error("the answer of the server is cut short");
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const arrays = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const Type = TYPES[entry.dtype];
    if (!Type) throw new Error(`the array ${name} has the unknown type ${entry.dtype}`);
    const [begin, end] = entry.data_offsets;
    const count = (end - begin) / Type.BYTES_PER_ELEMENT;
    if (count !== entry.shape.reduce((product, size) => product * size, 1)) {
      throw new Error(`the array ${name} does not have the size that its shape says`);
    }
    arrays[name] = { data: new Type(buffer, 8 + length + begin, count), shape: entry.shape };
  }
  return { metadata: header.__metadata__ ?? {}, arrays };
}
