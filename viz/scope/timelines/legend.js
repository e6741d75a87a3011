/** What the colours of the rasters mean. */

import { make, termLink } from "../dom.js";

/** kind, text, and the term that it leads to */
const ENTRIES = [
  ["fire", "refreshed", "refresh"],
  ["shade", "not refreshed, shaded by drift", "drift"],
  ["hatch", "no decision", "layer-step"],
];

export function makeLegend() {
  const entries = ENTRIES.map(([kind, text, term]) =>
    make(
      "span",
      {},
      make("i", { class: `timelines-swatch timelines-${kind}`, "aria-hidden": "true" }),
      termLink(text, term),
    ),
  );
  return make("div", { class: "timelines-legend" }, ...entries);
}
