"""Stop ends what is in view and nothing else, whatever was reloaded or opened before, and says so at once."""

from __future__ import annotations

import pytest

from tests.app.browser.form import (
    LIVE,
    choose_scene,
    fill,
    leave,
    own_runs,
    press_run,
    short_runs,
    shown_run,
    wait_for_end,
)
from tests.app.browser.opening import FRAMES

LONG, OTHER = 7, 6
STOP = ".scope-stop"
GOING = "rcrScope.steps.a > 3 && rcrScope.steps.b > 3"
STATUS = ".scope-status-line"
FIDELITIES = """
[...document.querySelectorAll(".scope-fidelity")].every((box) => /[0-9][.][0-9]{2}/.test(box.textContent))
"""


@pytest.fixture
def running(page, store):
    """A page on which a long pair has just begun; its uncompressed run waits."""
    choose_scene(page, LONG)
    press_run(page)
    page.wait_for_function(GOING)
    yield page
    leave(store, page)


def reload(page) -> None:
    page.wait_for_function("location.hash.includes(rcrScope.state.b)")
    page.reload()
    page.wait_for_function(f"window.rcrScope && {GOING}")


def test_after_a_reload_stop_ends_the_uncompressed_run_too(running, store):
    reload(running)
    running.locator(STOP).click()
    wait_for_end(running)
    running.wait_for_timeout(500)
    runs = own_runs(store, running)
    assert len(runs) == 3 and {run.status for run in runs} == {"stopped"}


def test_stop_leaves_an_earlier_pair_and_its_uncompressed_run_alone(running, store):
    choose_scene(running, OTHER)
    press_run(running)
    running.wait_for_function("rcrScope.status.a === 'queued' && rcrScope.status.b === 'queued'")
    running.locator(STOP).click()
    wait_for_end(running)
    running.wait_for_timeout(500)
    runs = own_runs(store, running)
    assert {run.status for run in runs[:3]} == {"stopped"}
    assert len(runs) == 6 and "stopped" not in {run.status for run in runs[3:]}


def test_after_a_reload_the_fidelity_comes_when_the_uncompressed_run_has_ended(page, store):
    """It ends last: two runs go on at once."""
    short_runs(page)
    fill(page, "max_new_tokens", "60")
    choose_scene(page, LONG)
    press_run(page)
    page.wait_for_function(GOING)
    reload(page)
    wait_for_end(page)
    assert not own_runs(store, page)[0].finished
    page.wait_for_function(FIDELITIES)
    assert not page.locator("#scope .scope-notice").count()
    leave(store, page)


def test_a_run_that_is_stopped_has_no_fidelity(running, store):
    running.wait_for_function("rcrScope.steps.a > 10")
    running.locator(STOP).click()
    wait_for_end(running)
    running.wait_for_timeout(300)
    assert running.locator(".scope-fidelity:visible").count() == 0


def test_stop_says_at_once_that_it_was_heard(running):
    """A prefill is gone through to its end, and a connection may be slow."""
    unanswered = []
    running.route("**/stop", lambda route: unanswered.append(route))
    running.locator(STOP).click()
    running.wait_for_function(f"/A RCR: stopping/.test(document.querySelector('{STATUS}').textContent)")
    assert running.locator(STOP).is_disabled()
    assert running.evaluate(LIVE)
    for route in unanswered:
        route.continue_()
    wait_for_end(running)


@pytest.fixture
def stranger(watched, address):
    """The page of somebody else."""
    return watched.page(address)


def test_who_watches_by_a_link_has_no_stop(stranger, running, store):
    a, b = (shown_run(store, running, which) for which in "ab")
    stranger.evaluate("(link) => { location.hash = link; }", f"#a={a.id}.{a.key}&b={b.id}.{b.key}")
    stranger.wait_for_function(GOING)
    stranger.evaluate(FRAMES)
    assert stranger.locator(STOP).is_hidden() and running.locator(STOP).is_visible()
    assert stranger.evaluate(LIVE)
    running.locator(STOP).click()
    wait_for_end(stranger)
    stranger.close()  # the runs are dropped next; it would still ask for them


def test_b_may_differ_from_a_in_its_settings(page, store):
    short_runs(page)
    page.locator("#rail").get_by_role("button", name="B, where it differs").click()
    field = page.get_by_label("select of B")
    field.wait_for()
    fill(page, "select of B", "16")
    choose_scene(page, 0)
    press_run(page)
    wait_for_end(page)
    status = page.locator(STATUS).inner_text()
    assert "A: 64 of 424 prefix entries" in status and "B: 16 of 424 prefix entries" in status
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("document.querySelector('#differing input, #differing textarea').value === ''")
    leave(store, page)
