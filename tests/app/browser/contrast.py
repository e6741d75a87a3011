"""The contrast of every text in sight, as WCAG 2 defines it, computed in the page.

A canvas mixes the colours: the grounds of all ancestors over each other, then the text. Of a gradient, every
colour of it counts; but not of a word's, which is the bar under it.
"""

CONTRASTS = """
() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (ground, colour, alpha = 1) => {
    context.globalAlpha = 1;
    context.fillStyle = `rgb(${ground.join()})`;
    context.fillRect(0, 0, 1, 1);
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const part = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const weights = [0.2126, 0.7152, 0.0722];
  const luminance = (rgb) => rgb.reduce((sum, value, at) => sum + weights[at] * part(value / 255), 0);
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((left, right) => left - right);
    return (high + 0.05) / (low + 0.05);
  };
  const colours = /(?:rgba?|color|oklab|oklch)\\([^()]*\\)/g;
  const grounds = (element) => {
    let found = [[255, 255, 255]];
    const line = [];
    for (let one = element; one; one = one.parentElement) line.unshift(one);
    for (const one of line) {
      const { backgroundColor, backgroundImage } = getComputedStyle(one);
      found = found.map((ground) => over(ground, backgroundColor));
      const stops = one.matches(".scope-word") ? [] : (backgroundImage.match(colours) ?? []);
      found.push(...stops.flatMap((stop) => found.map((ground) => over(ground, stop))));
    }
    return found;
  };
  const opacity = (element) => {
    let product = 1;
    for (let one = element; one; one = one.parentElement) product *= Number(getComputedStyle(one).opacity);
    return product;
  };
  const found = [];
  const note = (name, ratio) => found.push([name, Math.round(100 * ratio) / 100]);
  const dialog = document.querySelector("dialog[open]");
  const parts = dialog ? [dialog] : document.querySelectorAll(".scope, #heading, .skip-link");
  for (const part of parts) {
    const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      const text = walker.currentNode.textContent.trim();
      if (!text || !element.checkVisibility({ visibilityProperty: true })) continue;
      if (element.closest(":disabled")) continue;
      const { color } = getComputedStyle(element);
      const alpha = opacity(element);
      const ratios = grounds(element).map((ground) => ratio(over(ground, color, alpha), ground));
      note(`${element.className || element.tagName}: ${text.slice(0, 40)}`, Math.min(...ratios));
    }
  }
  const scope = document.querySelector(".scope"); // and what is written on canvases
  const named = (name) => getComputedStyle(scope).getPropertyValue(`--scope-${name}`);
  for (const ground of ["ground", "panel"]) {
    const below = over([255, 255, 255], named(ground));
    for (const name of ["text", "faint", "a", "b", "accent", "fire"]) {
      note(`${name} on ${ground}`, ratio(over(below, named(name)), below));
    }
  }
  return found;
}
"""
