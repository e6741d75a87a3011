/** A canvas as large as its box, sharp on every display. */

/**
 * Fit the pixels of a canvas to its box. Returns a context in CSS pixels, cleared, and the size of the box.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height in CSS pixels
 */
export function fitted(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns;
    canvas.height = rows;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
