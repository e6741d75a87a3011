/** Where the focus goes when another tab is shown. */

const FRAMES = 600; // that a run may take to its first step

/** Give the focus to a control of the Scope as soon as it can take it, unless it has gone elsewhere by then. */
export async function focusOn(selector) {
  for (let frame = 0; frame < FRAMES; frame += 1) {
    await new Promise(requestAnimationFrame);
    const { activeElement } = document;
    const elsewhere = activeElement !== document.body && !activeElement.closest(".scope-study");
    if (elsewhere && activeElement.checkVisibility()) return;
    const element = document.querySelector(selector);
    if (!element?.checkVisibility() || element.disabled) continue;
    element.focus({ preventScroll: true });
    return;
  }
}
