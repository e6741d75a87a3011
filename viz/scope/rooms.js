/** The tabs of the page: go to one, and to a term of the glossary in it. */

const TRIES = 40; // a tab is drawn when it is first opened
const EVERY = 50; // ms

/** @param {"Scope"|"Runs"|"Study"|"Guide"} name */
export function showRoom(name) {
  const tabs = document.querySelectorAll("#rooms [role=tab]");
  [...tabs].find((tab) => tab.textContent.trim() === name)?.click();
}

/** Clicks on a term anywhere on the page lead to its entry. */
export function listenForTerms(signal) {
  const onClick = (event) => {
    const term = event.target.closest?.("a[data-term]")?.dataset.term;
    if (!term) return;
    event.preventDefault();
    showRoom("Guide");
    find(term, TRIES);
  };
  document.addEventListener("click", onClick, { signal });
}

function find(term, tries) {
  const headings = document.querySelectorAll("#guide-glossary h3");
  const heading = [...headings].find((one) => slug(one.textContent) === slug(term));
  if (heading) point(heading);
  else if (tries) setTimeout(() => find(term, tries - 1), EVERY);
}

function point(heading) {
  document.querySelector("#guide-glossary .found")?.classList.remove("found");
  heading.classList.add("found");
  heading.tabIndex = -1;
  heading.scrollIntoView({ block: "center" });
  heading.focus({ preventScroll: true });
}

/** "KV head" -> "kv-head": as the guide's anchors are made. */
const slug = (text) =>
  text
    .trim()
    .toLowerCase()
    .replace(/[^\w\s-]/g, "")
    .replace(/\s+/g, "-");
