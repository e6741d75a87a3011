"""Opens runs in a browser that owns them, and puts views into its address."""

from __future__ import annotations

from contextlib import contextmanager

from tests.app.browser.conftest import Watched

OWNER = "the-browser-of-these-tests"
READY = """
() => ["a", "b"].every((which) => {
  if (!rcrScope.state[which]) return true;
  const last = rcrScope.steps[which] - 1;
  return last >= 0 && rcrScope.value(which, last, 0, 0) !== null;
})
"""
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
GO = """
(fragment) => new Promise((done) => {
  addEventListener("hashchange", () => setTimeout(done), { once: true });
  location.hash = `${fragment}&again=${performance.now()}`;
})
"""

COLUMNS = """
async ([selector, steps]) => {
  const range = document.querySelector(".scope-range");
  const canvas = document.querySelector(selector);
  const cursor = document.querySelector(".timelines-cursor:not(.timelines-ghost)");
  const found = [];
  for (const step of steps) {
    range.value = step;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    while (rcrScope.painted !== step) await new Promise(requestAnimationFrame);
    const { left, width } = cursor.getBoundingClientRect();
    found.push(left + width / 2 - canvas.getBoundingClientRect().left);
  }
  return found;
}
"""


@contextmanager
def watching(chromium, address: str):
    """Pages that the tests of a file share, watched as those of a test are."""
    watched = Watched(chromium, address)
    yield watched
    for context in watched.contexts:
        context.close()
    watched.check()


def excuse_refusals(watched) -> None:
    """The browser notes in its console that a run was not given out; that alone is as it should be."""
    assert all("404" in error for error in watched.errors), watched.errors
    watched.errors.clear()


def owners_context(watched, address: str, **options):
    """A browser whose token is OWNER."""
    token = {"name": "rcr-scope-owner", "value": OWNER}
    storage = {"cookies": [], "origins": [{"origin": address.rstrip("/"), "localStorage": [token]}]}
    return watched.context(storage_state=storage, **options)


def hold(store, trace):
    """Keep a run for OWNER."""
    return store.add(OWNER, trace, label="made")


def opened(context, address: str, fragment: str):
    """A new page with a view in its address, drawn."""
    page = context.new_page()
    page.goto(f"{address}#{fragment}")
    page.wait_for_function("window.rcrScope")
    settle(page)
    return page


def go(page, fragment: str) -> None:
    """Put another view into the address of a page."""
    page.evaluate(GO, fragment)
    settle(page)


def settle(page) -> None:
    """Wait until everything of the open runs has come and is drawn."""
    page.wait_for_function(READY)
    page.evaluate(FRAMES)


def columns(page, canvas: str, steps) -> list[float]:
    """The middle of each step's column on a canvas of the timelines: there the cursor stands at that step."""
    return page.evaluate(COLUMNS, [canvas, list(steps)])
