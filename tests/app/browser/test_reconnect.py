"""A run belongs to the server: lost connections, reloads and closed tabs cost nobody a step of it."""

from __future__ import annotations

import time

import pytest

import app
from rcr_core.runs import RunStore
from tests.app.browser.conftest import Watched, free_port
from tests.app.browser.form import (
    LIVE,
    choose_scene,
    expecting,
    leave,
    notice,
    open_settings,
    own_runs,
    press_run,
    wait_for_end,
)

LONG = 7
BACK_BAR = 2.0  # seconds until everything is there again
LOST = "/connection lost/.test(document.querySelector('.scope-status-line').textContent)"
BOTH = "rcrScope.steps.a >= {0} && rcrScope.steps.b >= {1}"
OFFLINE, REFUSED, GONE = "ERR_INTERNET_DISCONNECTED", "ERR_CONNECTION_REFUSED", "status of 404"


@pytest.fixture
def running(page, store):
    """A page on which a long pair has just begun, without a third run that would share the time."""
    choose_scene(page, LONG)
    page.get_by_role("button", name="More settings").click()
    page.get_by_label("also decode uncompressed").uncheck()
    press_run(page)
    page.wait_for_function("rcrScope.steps.a > 3 && rcrScope.steps.b > 3")
    yield page
    leave(store, page)


def pair(store, page):
    """The two runs of a page's browser, A first; there must be no third."""
    b, a = own_runs(store, page)
    return a, b


def check_whole(store, page, status: str = "done") -> None:
    """The pair has ended, and the page has every step and every letter of it."""
    if status == "stopped":
        page.locator(".scope-stop").click()
    wait_for_end(page)
    for which, run in zip("ab", pair(store, page), strict=True):
        assert run.status == status
        assert page.evaluate("(which) => rcrScope.steps[which]", which) == run.steps
        assert page.evaluate("(which) => rcrScope.text(which)", which) == run.trace().text
        assert page.evaluate("(which) => rcrScope.state[which]", which) == run.id


def test_three_seconds_without_a_network_cost_nothing(running, store, watched):
    with expecting(watched, OFFLINE):
        running.context.set_offline(True)
        running.wait_for_function(LOST)
        assert "the runs go on meanwhile" in running.locator(".scope-status-line").inner_text()
        shown = running.evaluate("rcrScope.steps.a")
        running.wait_for_timeout(3000)
        a, b = pair(store, running)
        missed = a.steps - shown
        assert missed > 10 and running.evaluate("rcrScope.steps.a") == shown
        began = time.monotonic()
        running.context.set_offline(False)
        running.wait_for_function(BOTH.format(a.steps, b.steps))
        took = time.monotonic() - began
    print(f"\n{missed} steps were there {took:.2f} s after the network (bar {BACK_BAR:.0f})")
    assert took <= 2 * BACK_BAR
    running.wait_for_function(f"!{LOST}")
    check_whole(store, running)


def test_a_proxy_that_answers_for_the_server_is_a_lost_connection(running, store, watched):
    away = {"status": 502, "content_type": "text/html", "body": "<h1>Bad Gateway</h1>"}
    with expecting(watched, "status of 502"):
        running.route("**/steps?*", lambda route: route.fulfill(**away))
        running.wait_for_function(LOST)
        running.unroute("**/steps?*")
        running.wait_for_function(f"!{LOST}")
    assert not notice(running)
    check_whole(store, running, "stopped")


def test_a_reload_attaches_to_the_same_runs(running, store):
    named = "[rcrScope.state.a, rcrScope.state.b].every((id) => location.hash.includes(id))"
    running.wait_for_function(named, timeout=1500)  # although frame follows upon frame
    a, b = pair(store, running)
    assert not a.finished
    began = time.monotonic()
    running.reload()
    running.wait_for_function("window.rcrScope")
    drawn = time.monotonic()
    running.wait_for_function(BOTH.format(a.steps, b.steps))
    took = time.monotonic() - drawn
    print(f"\nall steps were there {took:.2f} s after the page was (bar {BACK_BAR:.0f})")
    print(f"and {time.monotonic() - began:.2f} s after the reload began")
    assert took <= 2 * BACK_BAR
    assert pair(store, running) == (a, b)
    check_whole(store, running, "stopped")


def test_a_run_ends_by_itself_when_its_tab_is_closed(page, store, address):
    back = page.context.new_page()
    back.goto(address)
    choose_scene(page, 0)
    press_run(page)
    page.wait_for_function("rcrScope.steps.a > 1")
    runs = own_runs(store, page)
    page.close()
    assert not any(run.finished for run in runs)
    deadline = time.monotonic() + 60
    while not all(run.finished for run in runs):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert [run.status for run in runs] == ["done"] * 3
    back.get_by_role("tab", name="Runs").click()
    back.wait_for_function(
        f"[...document.querySelectorAll('#runs tr')].filter((row) => /{runs[0].label}/.test(row.textContent))"
        ".length === 3"
    )
    leave(store, back)


def test_a_server_that_was_started_anew_is_told_from_a_lost_connection(chromium):
    """What has come of the runs stays in view; the words say what happened; the next run works."""
    port, stores = free_port(), [RunStore(), RunStore()]
    first = serve_at(port, stores[0])
    watched = Watched(chromium, first.local_url)
    page = watched.page(first.local_url)
    choose_scene(page, LONG)
    press_run(page)
    page.wait_for_function("rcrScope.steps.a > 3 && rcrScope.steps.b > 3")
    with expecting(watched, REFUSED, GONE):
        first.close()
        stores[0].close()
        page.wait_for_function(LOST)
        second = serve_at(port, stores[1])
        page.wait_for_selector(".scope-notice")
        assert "not on the server" in notice(page) and "the server was started anew" in notice(page)
        page.wait_for_function(f"!({LIVE})")
    steps = page.evaluate("rcrScope.steps.a")
    assert steps > 3 and page.locator(".scope-words").first.inner_text()
    open_settings(page)
    press_run(page)
    page.wait_for_function("rcrScope.steps.a > 3")
    assert not notice(page)
    page.context.close()
    second.close()
    stores[1].close()
    watched.check()


def serve_at(port: int, store: RunStore):
    options = app.parser().parse_args(["--port", str(port)])
    return app.serve(options, store, prevent_thread_lock=True)
