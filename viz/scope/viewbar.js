/** How the images are shown: layer, KV head, kind of map, colour scale, overlay, difference, zoom. */

import { make, termLink } from "./dom.js";
import { KEYS } from "./keys.js";
import { choice } from "./transport.js";
import { MAP_NAMES } from "./words.js";

const SCALES = [
  ["run", "scale: run"],
  ["step", "scale: step"],
];
const COLOURS = [
  ["viridis", "viridis"],
  ["cividis", "cividis"],
];

export function mountViewBar(element, session, parts) {
  const { store } = session;
  const controls = { ...choices(store), opacity: opacitySlider(store) };
  const { layer, head, map, scale, colours, opacity } = controls;
  const toggle = (text, title, key) => {
    const onclick = () => KEYS[key][1](session, parts);
    return make("button", { ...CHIP, title: `${title} (${key})`, onclick }, text);
  };
  const diff = toggle("A − B", "map of differences", "c");
  const swap = toggle("A ⇄ B", "swap A and B", "x");
  const zoom = [toggle("−", "zoom out", "-"), toggle("+", "zoom in", "+")];
  zoom.forEach((button, index) => button.setAttribute("aria-label", index ? "zoom in" : "zoom out"));
  const whole = make("button", { ...CHIP, title: "the whole picture (double click)" }, "1:1");
  whole.addEventListener("click", () => store.set({ zoom: [1, 0.5, 0.5] }));
  const named = [
    label("layer", "layer", layer),
    label("KV head", "KV head", head),
    label("map", "attention", map),
    label("colours", "colour scale", scale),
  ];
  const overlay = make("label", {}, "overlay", opacity);
  const zooms = make("span", { class: "scope-group" }, ...zoom, whole);
  element.append(
    make("div", { class: "scope-bar scope-viewbar" }, ...named, colours, overlay, diff, swap, zooms),
  );
  const keys = ["layer", "head", "map", "scale", "colours", "opacity", "diff", "runA", "runB"];
  store.add({ keys, draw: () => show(controls, diff, store) });
}

const CHIP = { type: "button", class: "scope-chip-button" };

/** A control has a name of its own; what stands before it leads to the glossary. */
const label = (text, term, control) =>
  make("span", { class: "scope-labelled" }, termLink(text, term), control);

function choices(store) {
  const setter =
    (field, read = (value) => value) =>
    (value) =>
      store.set({ [field]: read(value) });
  const orMean = (value) => (value === "mean" ? "mean" : Number(value));
  return {
    layer: choice("layer", [["mean", "mean over layers"]], setter("layer", orMean)),
    head: choice("KV head", [["mean", "all KV heads"]], setter("head", orMean)),
    map: choice("map", Object.entries(MAP_NAMES), setter("map")),
    scale: choice("colour scale", SCALES, setter("scale")),
    colours: choice("colours", COLOURS, setter("colours")),
  };
}

function opacitySlider(store) {
  const name = "opacity of the overlay";
  const attributes = {
    type: "range",
    min: 0,
    max: 100,
    "aria-label": name,
    title: name,
    class: "scope-opacity",
  };
  const slider = make("input", attributes);
  slider.addEventListener("input", () => store.set({ opacity: Number(slider.value) / 100 }));
  return slider;
}

/** The bar as the state has it. */
function show({ layer, head, map, scale, colours, opacity }, diff, store) {
  const { state } = store;
  fill(layer, store.layers, (index) => `layer ${index}`);
  fill(head, store.heads, (index) => `KV head ${index}`);
  const full = [store.pages.a, store.pages.b].some((pages) => pages?.run.rows.map_full_scale);
  map.options[2].hidden = !full && state.map !== "full";
  layer.value = state.layer;
  head.value = state.head;
  map.value = state.map;
  scale.value = state.scale;
  colours.value = state.colours;
  opacity.value = Math.round(state.opacity * 100);
  diff.setAttribute("aria-pressed", state.diff);
}

/** Options for 0 .. count - 1 behind the first one, which is the mean. */
function fill(select, count, name) {
  while (select.options.length > count + 1) select.lastChild.remove();
  for (let index = select.options.length - 1; index < count; index += 1)
    select.append(make("option", { value: index }, name(index)));
}
