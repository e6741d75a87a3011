/**
 * The view as the fragment of the address: every field of the state that a person can set, and nothing else.
 *
 * A run is named by its id; a link that was made to be shared adds the run's key (`id.key`), with which
 * anyone
 * who reaches this server may read it. The fragment is never sent to a server.
 */

import { INITIAL } from "./store.js";

const number = (text) => (text === "" || !Number.isFinite(Number(text)) ? undefined : Number(text));
const count = (text) => (/^\d{1,7}$/.test(text) ? Number(text) : undefined);
const orMean = (text) => (text === "mean" ? "mean" : count(text));
const oneOf =
  (...options) =>
  (text) =>
    options.includes(text) ? text : undefined;
const flag = (text) => (/^[01]$/.test(text) ? text === "1" : undefined);
const list = (length, item) => (text) => {
  const values = text.split(",").map(item);
  return values.length === length && values.every((value) => value !== undefined) ? values : undefined;
};

/** field of the state -> [letter in the address, reader of its text] */
const FIELDS = {
  step: ["s", count],
  layer: ["l", orMean],
  head: ["h", orMean],
  patch: ["p", count],
  picture: ["i", count],
  map: ["m", oneOf("attention", "missed", "full")],
  scale: ["k", oneOf("run", "step")],
  colours: ["q", oneOf("viridis", "cividis")],
  diff: ["c", flag],
  opacity: ["o", number],
  zoom: ["z", list(3, number)],
  range: ["r", list(2, count)],
  follow: ["f", flag],
  speed: ["v", number],
};

/**
 * @param {import("./store.js").State} state
 * @param {Map<string, string>} [keys] keys of runs by id, for a link that others can open
 */
export function toFragment(state, keys = new Map()) {
  const parts = [];
  for (const which of ["a", "b"]) {
    const id = state[which];
    if (id) parts.push(`${which}=${encodeURIComponent(keys.has(id) ? `${id}.${keys.get(id)}` : id)}`);
  }
  for (const [field, [letter]] of Object.entries(FIELDS)) {
    const text = asText(state[field]);
    if (text !== asText(INITIAL[field])) parts.push(`${letter}=${encodeURIComponent(text)}`);
  }
  return parts.length ? `#${parts.join("&")}` : "";
}

/**
 * What an address leaves out is as it is at first, whatever the page showed before.
 * @param {string} fragment with or without its #
 * @returns {{a: ?string, b: ?string, keys: Map<string, string>, view: Partial<import("./store.js").State>}}
 */
export function fromFragment(fragment) {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const view = Object.fromEntries(Object.keys(FIELDS).map((field) => [field, INITIAL[field]]));
  const found = { a: null, b: null, keys: new Map(), view };
  for (const which of ["a", "b"]) {
    const [id, key] = (parameters.get(which) ?? "").split(".");
    if (!/^[\w-]{1,64}$/.test(id)) continue;
    found[which] = id;
    if (key) found.keys.set(id, key);
  }
  for (const [field, [letter, read]] of Object.entries(FIELDS)) {
    if (!parameters.has(letter)) continue;
    const value = within(field, read(parameters.get(letter)));
    if (value !== undefined) found.view[field] = value;
  }
  return found;
}

/** Values that a hand-made address may put out of range are dropped. */
function within(field, value) {
  if (value === undefined) return undefined;
  const limits = { opacity: [0, 1], speed: [1, 60] }[field];
  if (limits && !(value >= limits[0] && value <= limits[1])) return undefined;
  if (
    field === "zoom" &&
    !(value[0] >= 1 && value[0] <= 16 && value.slice(1).every((at) => at >= 0 && at <= 1))
  )
    return undefined;
  if (field === "range" && value[0] > value[1]) return undefined;
  return value;
}

function asText(value) {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "1" : "0";
  return Array.isArray(value) ? value.map((item) => String(item)).join(",") : String(value);
}
