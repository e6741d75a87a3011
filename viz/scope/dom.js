/** Elements made in code: every text is text, never markup. */

/** An element with a class, attributes and children; strings become text, never markup. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The letter of a run in its colour. @param {"a"|"b"} which */
export const badge = (which) => make("span", { class: `scope-badge scope-${which}` }, which.toUpperCase());

/** A word that leads to its entry in the glossary; `term` where the entry's name is another. */
export const termLink = (text, term = text) => make("a", { href: "#", "data-term": term }, text);
