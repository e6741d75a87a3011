/** Plotly as this page uses it: loaded once, when the first figure is wanted, and in the page's colours. */

import { ServerError } from "./client.js";

let loading = null;

/**
 * @param {import("../client.js").Client} client
 * @returns {Promise<object>} window.Plotly
 */
export function plotly(client) {
  loading ??= load(client).catch((error) => {
    loading = null;
    throw error;
  });
  return loading;
}

async function load(client) {
  if (!client.server.plotly) await client.list(); // only the server knows its version
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    // kept for good: large, and never another
    script.src = client.url("plotly.min.js", { v: client.server.plotly });
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => {
      script.remove();
      reject(new ServerError("the figures' program could not be loaded", "is the server still running?"));
    });
    document.head.append(script);
  });
}

export const CONFIG = Object.freeze({
  responsive: true,
  displaylogo: false,
  showSendToCloud: false,
  plotlyServerURL: "",
  modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "autoScale2d"],
});

/** The ground of the page around an element, for a picture that leaves it. */
export const groundOf = (element) => getComputedStyle(element).getPropertyValue("--scope-ground").trim();

/** A layout in the colours and the font of the page around an element. */
export function inTheme(layout, element) {
  const style = getComputedStyle(element);
  const colour = (name) => style.getPropertyValue(name).trim();
  const font = { ...layout.font, color: colour("--scope-text"), family: style.fontFamily, size: 12 };
  const themed = { ...layout, font };
  for (const name of ["xaxis", "yaxis", "yaxis2"]) {
    if (name === "yaxis2" && !layout[name]) continue;
    const axis = layout[name] ?? {};
    const title = { ...axis.title, font: { size: 12 } };
    themed[name] = { ...axis, title, gridcolor: colour("--scope-line") };
  }
  return themed;
}

const ARRAYS = {
  f8: Float64Array,
  f4: Float32Array,
  i1: Int8Array,
  u1: Uint8Array,
  i2: Int16Array,
  u2: Uint16Array,
  i4: Int32Array,
  u4: Uint32Array,
};

/**
 * The numbers of a figure's axis: plotly writes arrays in base 64, those of two dimensions with their shape.
 * @returns {number[]|number[][]}
 */
export function numbers(value) {
  if (!value?.bdata) return value ?? [];
  const bytes = Uint8Array.from(atob(value.bdata), (character) => character.charCodeAt(0));
  const flat = Array.from(new ARRAYS[value.dtype](bytes.buffer), value.dtype === "f4" ? decimal : Number);
  if (value.shape === undefined) return flat;
  const [rows, columns] = String(value.shape).split(",").map(Number);
  return Array.from({ length: rows }, (_, row) => flat.slice(row * columns, (row + 1) * columns));
}

/** The shortest decimal that is this number in single precision. */
function decimal(single) {
  for (const digits of [6, 7, 8]) {
    const value = Number(single.toPrecision(digits));
    if (Math.fround(value) === single) return value;
  }
  return single;
}
