/** The few signs of the transport bar, drawn, because fonts do not agree on them. */

const NAMESPACE = "http://www.w3.org/2000/svg";
const PATHS = {
  first: "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M12 3v10L4 8z",
  play: "M4 2.5v11L13 8z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  on: "M4 3v10l8-5z",
  last: "M11 3h2v10h-2zM3 3v10l7-5z",
};

/** @param {keyof typeof PATHS} name */
export function icon(name) {
  const picture = document.createElementNS(NAMESPACE, "svg");
  for (const [key, value] of Object.entries({
    viewBox: "0 0 16 16",
    width: 14,
    height: 14,
    "aria-hidden": "true",
  })) {
    picture.setAttribute(key, value);
  }
  const path = document.createElementNS(NAMESPACE, "path");
  path.setAttribute("d", PATHS[name]);
  path.setAttribute("fill", "currentColor");
  picture.append(path);
  return picture;
}
