/** Whether somebody looks at a tab: it is in sight, and so is the window. */

/**
 * @param {HTMLElement} element
 * @param {function(boolean): void} tell
 */
export function watch(element, tell, signal) {
  let seen = false;
  const say = () => tell(seen && !document.hidden);
  const observer = new IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    say();
  });
  observer.observe(element);
  document.addEventListener("visibilitychange", say, { signal });
  signal.addEventListener("abort", () => (observer.disconnect(), tell(false)));
}
