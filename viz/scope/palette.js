/** Colours of the page: colour maps that every reader can tell apart, and the theme's own colours. */

// Viridis and cividis at ten points (matplotlib's published tables) and a map around its middle, interpolated in between.
const VIRIDIS = [
  "440154",
  "482878",
  "3e4989",
  "31688e",
  "26828e",
  "1f9e89",
  "35b779",
  "6ece58",
  "b5de2b",
  "fde725",
];
const CIVIDIS = [
  "00224e",
  "123570",
  "3b496c",
  "575d6d",
  "707173",
  "8a8678",
  "a59c74",
  "c3b369",
  "e1cc55",
  "fee838",
];
const DIVERGING = ["0d5fa8", "4a90c9", "93bfe0", "d3e3ef", "f4f4f4", "f6dfc9", "eeb27a", "d97f2e", "a85108"];

/** Colours of the two runs (Okabe and Ito's set, which colour-blind readers can tell apart). */
const RUN_COLOURS = { a: "#0072b2", b: "#d55e00" };
const RUN_COLOURS_DARK = { a: "#56b4e9", b: "#e69f00" };

function table(stops) {
  const colours = new Uint8ClampedArray(256 * 3);
  for (let value = 0; value < 256; value += 1) {
    const at = (value / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    for (let channel = 0; channel < 3; channel += 1) {
      const [from, to] = [low, low + 1].map((stop) =>
        parseInt(stops[stop].slice(2 * channel, 2 * channel + 2), 16),
      );
      colours[3 * value + channel] = from + (to - from) * (at - low);
    }
  }
  return colours;
}

const MAPS = { viridis: table(VIRIDIS), cividis: table(CIVIDIS), diverging: table(DIVERGING) };

const STYLES = Object.fromEntries(
  Object.entries(MAPS).map(([name, colours]) => [
    name,
    Array.from(
      { length: 256 },
      (_, value) => `rgb(${colours[3 * value]},${colours[3 * value + 1]},${colours[3 * value + 2]})`,
    ),
  ]),
);

/**
 * A CSS colour for a share in [0, 1]; values outside are clamped.
 * @param {number} share
 * @param {"viridis"|"cividis"|"diverging"} map
 */
export function colour(share, map) {
  return STYLES[map][Math.round(Math.min(Math.max(share, 0), 1) * 255)];
}

function isDark() {
  return document.body.classList.contains("dark");
}

export function runColours() {
  return isDark() ? RUN_COLOURS_DARK : RUN_COLOURS;
}

/** The theme's colours as canvas code needs them; read again after a change of theme. */
export function themeColours(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    text: read("--scope-text"),
    faint: read("--scope-faint"),
    line: read("--scope-line"),
    ground: read("--scope-ground"),
    fire: read("--scope-fire"),
    accent: read("--scope-accent"),
    ...runColours(),
  };
}
