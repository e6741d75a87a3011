"""Every message stays until it is dismissed, and a lost connection is found again without a person's help."""

from __future__ import annotations

import plotly

from rcr_core.bundled.examples import EXAMPLES_FOLDER
from tests.app.browser.form import expecting, leave

RCR = EXAMPLES_FOLDER / "5-ten-objects-rcr.rcr"
EXAMPLE = "5-ten-objects-rcr"
CARDS = "#scope .scope-notice"
LOST = "/connection lost/.test(document.querySelector('.scope-status-line').textContent)"
OFFLINE = "ERR_INTERNET_DISCONNECTED"
COUNT_BLOBS = """
window.held = new Set();
const { createObjectURL, revokeObjectURL } = URL;
URL.createObjectURL = (blob) => {
  const address = createObjectURL.call(URL, blob);
  window.held.add(address);
  window.made = (window.made ?? 0) + 1;
  return address;
};
URL.revokeObjectURL = (address) => {
  window.held.delete(address);
  revokeObjectURL.call(URL, address);
};
"""


def room(page, name):
    page.locator("#rooms [role=tab]", has_text=name).click()


def test_two_missing_runs_are_two_messages(page, watched):
    with expecting(watched, "status of 404"):
        page.evaluate("location.hash = '#a=gone-before&b=never-was'")
        page.wait_for_function(f"document.querySelectorAll('{CARDS}').length === 2")
    said = page.locator(CARDS).all_inner_texts()
    assert any("gone-before" in text for text in said) and any("never-was" in text for text in said)
    page.locator(CARDS, has_text="gone-before").get_by_role("button", name="Dismiss").click()
    page.locator(CARDS, has_text="gone-before").wait_for(state="detached")
    assert "never-was" in page.locator(CARDS).inner_text()
    page.evaluate(f"location.hash = '#a={EXAMPLE}'")
    page.locator(CARDS).wait_for(state="detached")


def test_the_connection_is_found_again_while_nothing_goes_on(page, watched):
    room(page, "Runs")
    page.wait_for_selector(".runs-run")
    room(page, "Scope")
    with expecting(watched, OFFLINE):
        page.context.set_offline(True)
        upload = {"name": "mine.rcr", "mimeType": "application/octet-stream", "buffer": RCR.read_bytes()}
        page.locator(".runs-opening input").set_input_files(upload)
        page.wait_for_function(LOST)
        page.wait_for_timeout(2500)
        assert page.evaluate(LOST)
        page.context.set_offline(False)
        page.wait_for_function(f"!{LOST}", timeout=6000)
    card = page.locator("#runs .scope-notice")
    assert "does not answer" in card.inner_text(timeout=1000) and "by itself" not in card.inner_text()


def test_a_run_that_could_not_be_dropped_stays_in_view(page, watched, store):
    room(page, "Runs")
    page.wait_for_selector(".runs-run")
    upload = {"name": "mine.rcr", "mimeType": "application/octet-stream", "buffer": RCR.read_bytes()}
    page.locator(".runs-opening input").set_input_files(upload)
    page.wait_for_function("rcrScope.steps.a > 0")
    shown = page.evaluate("rcrScope.state.a")
    room(page, "Runs")
    own = page.locator(".runs-run", has_text="mine")
    with expecting(watched, OFFLINE):
        page.route("**/scope/runs/*", lambda route: route.abort("internetdisconnected"))
        own.locator("button:visible", has_text="Drop").click()
        own.locator("button:visible", has_text="Drop it").click()
        page.locator("#runs .scope-notice").wait_for()
        assert page.evaluate("rcrScope.state.a") == shown and own.count() == 1
        page.wait_for_function("rcrScope.steps.a > 0")
        page.unroute("**/scope/runs/*")
    leave(store, page)


def test_the_figures_program_is_asked_for_by_its_version(page, watched):
    """So that the browser keeps its megabytes for good."""
    room(page, "Runs")
    page.locator(".runs-run", has_text="5-ten-objects").first.locator("button", has_text="Figures").click()
    page.wait_for_function("window.Plotly")
    (asked,) = [url for url in watched.requests if "plotly.min.js" in url]
    assert asked.endswith(f"?v={plotly.__version__}")


def test_the_pictures_of_the_examples_are_let_go_once_they_are_drawn(watched, address):
    page = watched.context().new_page()
    page.add_init_script(COUNT_BLOBS)
    page.goto(address)
    images = page.locator(".scope-examples img")
    images.first.wait_for()
    page.wait_for_function("(count) => window.made === count && !window.held.size", arg=images.count())
    assert all(images.evaluate_all("all => all.map((image) => image.naturalWidth > 0)"))
