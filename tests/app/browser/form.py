"""Works the form beside the Scope as a person does."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

NOTICE = "#scope .scope-notice"
LIVE_STATES = ["opening", "queued", "loading", "prefill", "decoding"]
LIVE = f"Object.values(rcrScope.status).some((status) => {LIVE_STATES}.includes(status))"
SHORT = 6  # new tokens of a run that only has to work
BUDGET = "Budget and controller"


def owner(page) -> str:
    """The token of the page's browser."""
    return page.evaluate("rcrPage.owner")


def own_runs(store, page) -> list:
    """The runs of the page's browser, newest first."""
    return [run for run in store.list(owner(page)) if not run.public]


def shown_run(store, page, which: str):
    """The run that a page shows as A or B."""
    return store.get(page.evaluate("(which) => rcrScope.state[which]", which), owner(page))


def choose_scene(page, index: int) -> None:
    """Pick a bundled scene, 0 to 7 by rising difficulty."""
    page.locator("#scenes .gallery-item").nth(index).click()
    page.wait_for_function(
        "(digit) => document.querySelector('#picture img')?.src.split('/').at(-1).startsWith(digit)",
        arg=str(index + 1),
    )


def choose_file(page, path: Path) -> None:
    """Pick a file as the picture, in the place of another."""
    if page.locator("#picture img").count():
        remove_picture(page)
    page.locator("#picture input[type=file]").first.set_input_files(path)
    page.wait_for_selector("#picture img", state="attached")


def remove_picture(page) -> None:
    page.get_by_role("button", name="Remove Image").click()


def press_run(page) -> None:
    """Press Run and wait until the new pair is open."""
    before = page.evaluate("rcrScope.state.a")
    page.locator("#run").click()
    page.wait_for_function("(before) => rcrScope.state.a && rcrScope.state.a !== before", arg=before)


def press_run_and_read(page) -> str:
    """Press Run where it will be refused; the message."""
    dismiss(page)
    page.locator("#run").click()
    page.wait_for_selector(NOTICE)
    return notice(page)


def notice(page) -> str:
    """All messages in sight."""
    return "\n".join(page.locator(NOTICE).all_inner_texts())


def dismiss(page) -> None:
    """Dismiss every message."""
    for button in page.locator(NOTICE).get_by_role("button", name="Dismiss").element_handles():
        button.click()
    page.wait_for_function(f"!document.querySelector('{NOTICE}')")


def fill(page, label: str, value: str) -> None:
    """Write into a field of the form and leave it."""
    field = page.locator("#rail").get_by_label(label, exact=True)
    field.fill(value)
    field.blur()


def open_settings(page) -> None:
    page.locator("#rail").get_by_role("button", name=BUDGET).click()
    page.wait_for_selector("#set-select input")


def short_runs(page) -> None:
    """Make runs that take well under a second. A form that was just opened may still be drawn over once."""
    open_settings(page)
    field = page.locator("#rail").get_by_label("max_new_tokens", exact=True)
    while field.input_value() != str(SHORT):
        fill(page, "max_new_tokens", str(SHORT))
        page.wait_for_timeout(250)


def wait_for_end(page, timeout: float = 60_000) -> None:
    page.wait_for_function(f"rcrScope.state.a && !({LIVE})", timeout=timeout)


def wait_until_idle(store, page) -> None:
    """Wait until every run of the page's browser is over, also the uncompressed one that no pane shows."""
    while not all(run.finished for run in own_runs(store, page)):
        page.wait_for_timeout(20)


def leave(store, page) -> None:
    """Close a page, and end and forget the runs of its browser, so that no other test waits for them."""
    runs = own_runs(store, page)
    page.close()
    for run in runs:
        store.drop(run.id, run.owner)


@contextmanager
def expecting(watched, *words: str):
    """Console errors with one of these words are part of what is tested; at least one must come."""
    yield
    for _ in range(20):
        found = [error for error in watched.errors if any(word in error for word in words)]
        if found:
            break
        watched.contexts[0].pages[0].wait_for_timeout(50)  # the browser tells of them a little later
    assert found, f"no console error with {words}"
    watched.errors[:] = [error for error in watched.errors if error not in found]
