"""The tabs beside the Scope: runs are listed, opened, compared, drawn and dropped; guide and tour lead."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from PIL import Image

from rcr_core.bundled.examples import EXAMPLES_FOLDER
from rcr_core.trace import read_trace
from viz.trajectories import FIGURES, figure_json

RCR = EXAMPLES_FOLDER / "5-ten-objects-rcr.rcr"
FIGURES_DRAWN = """
() => document.querySelectorAll(".runs-figure .js-plotly-plot").length === 4
  && [...document.querySelectorAll(".runs-plot-note")].every((note) => !note.textContent)
"""


def room(page, name):
    page.locator("#rooms [role=tab]", has_text=name).click()


@pytest.fixture
def runs(page):
    """The Runs tab of a browser that has run nothing yet."""
    room(page, "Runs")
    page.wait_for_selector(".runs-run")
    return page


def open_file(page, data, name="mine.rcr"):
    upload = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    page.locator(".runs-opening input").set_input_files(upload)


def row(page, name, policy=""):
    return page.locator(".runs-run", has_text=name).filter(has_text=policy)


def example(page, policy):
    return row(page, "5-ten-objects", policy)


def test_an_opened_file_is_shown_and_listed_with_its_numbers(runs):
    trace = read_trace(RCR)
    open_file(runs, RCR.read_bytes())
    runs.wait_for_function("rcrScope.steps.a > 0")
    assert runs.evaluate("rcrScope.text('a')") == trace.text
    room(runs, "Runs")
    cells = row(runs, "mine").inner_text()
    assert f"{100 * trace.refresh_rate:.1f} %" in cells
    assert f"{trace.mean_drift:.3f}" in cells
    assert "8 of 10" in cells  # the scene that the file claims is the one that its picture shows
    assert "0.93" in cells  # ROUGE-L to the uncompressed example of the same picture and prompt


def test_what_is_no_trace_is_refused_in_words(runs, watched):
    open_file(runs, b"not a trace at all, but long enough to look like one")
    notice = runs.locator(".scope-runs .scope-notice")
    notice.wait_for()
    assert "mine.rcr" in notice.inner_text() and "not a trace file" in notice.inner_text()
    watched.errors = [error for error in watched.errors if "415" not in error]  # the browser's own log line


def test_any_two_runs_can_be_compared(runs):
    example(runs, "Uncompressed").locator("input").first.check()
    example(runs, "BACON").locator("input").nth(1).check()
    runs.locator(".runs-main").click()
    runs.wait_for_function("rcrScope.steps.a > 0 && rcrScope.steps.b > 0")
    state = runs.evaluate("rcrScope.state")
    assert (state["a"], state["b"]) == ("5-ten-objects-full", "5-ten-objects-bacon")


def test_every_figure_is_drawn_from_the_run_and_can_be_saved(runs):
    example(runs, "RCR").locator("button", has_text="Figures").click()
    runs.wait_for_function(FIGURES_DRAWN)
    trace = read_trace(RCR)
    drawn = runs.evaluate(
        "[...document.querySelectorAll('.js-plotly-plot')].map((plot) => plot.data.map((one) => one.type))"
    )
    assert drawn == [
        [one["type"] for one in json.loads(figure_json(name, trace))["data"]] for name in FIGURES
    ]
    marks = runs.locator(".js-plotly-plot").evaluate_all(
        "plots => plots.map((plot) => plot.querySelectorAll('.trace path, .hm image').length)"
    )
    assert len(marks) == 4 and all(marks)
    figure = runs.locator(".runs-figure").nth(2)
    assert Image.open(io.BytesIO(saved(runs, figure, "PNG"))).width > 600
    assert saved(runs, figure, "SVG").startswith(b"<svg")
    assert len(saved(runs, figure, "CSV").splitlines()) > trace.steps - 1


def test_the_tables_are_those_of_the_run(runs):
    example(runs, "RCR").locator("button", has_text="Figures").click()
    data = saved(runs, runs.locator(".runs-tables"), "steps")
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert [int(found["token_id"]) for found in rows] == read_trace(RCR).tokens.tolist()


def saved(page, place, name) -> bytes:
    with page.expect_download() as download:
        place.locator("button", has_text=name).first.click()
    return download.value.path().read_bytes()


def test_only_an_own_run_can_be_dropped_and_only_after_a_question(runs):
    assert runs.locator(".runs-run button:visible", has_text="Drop").count() == 0
    open_file(runs, RCR.read_bytes())
    runs.wait_for_function("rcrScope.steps.a > 0")
    room(runs, "Runs")
    own = row(runs, "mine")
    own.locator("button:visible", has_text="Drop").click()
    assert own.count() == 1
    own.locator("button:visible", has_text="Drop it").click()
    own.wait_for(state="detached")


def test_a_dropped_run_is_asked_for_no_more(runs):
    late = []  # requests that reach the server only after the drop
    runs.route(re.compile("/scope/runs/[^/]+/(image|figures|layers)"), lambda route: late.append(route))
    open_file(runs, RCR.read_bytes())
    runs.wait_for_function("rcrScope.steps.a > 0")
    room(runs, "Runs")
    own = row(runs, "mine")
    runs.wait_for_timeout(300)
    own.locator("button:visible", has_text="Drop").click()
    own.locator("button:visible", has_text="Drop it").click()
    own.wait_for(state="detached")
    assert {route.request.url.split("/")[6].split("?")[0] for route in late} == {"image", "figures", "layers"}
    for route in late:
        route.continue_()
    runs.wait_for_timeout(300)  # `page` fails this test on a 404


def test_a_term_leads_to_its_entry(page):
    page.evaluate("location.hash = '#a=5-ten-objects-rcr'")
    page.wait_for_function("rcrScope.steps.a > 0")
    page.locator("a[data-term='drift']").first.click()
    entry = page.locator("#guide-glossary .found")
    entry.wait_for()
    assert entry.inner_text() == "drift" and entry.is_visible()


def test_every_term_of_the_page_has_an_entry(page):
    page.evaluate("location.hash = '#a=5-ten-objects-rcr&b=5-ten-objects-bacon&s=9&l=1&p=1'")
    page.wait_for_function("rcrScope.steps.a > 0 && rcrScope.steps.b > 0")
    page.get_by_role("button", name="Budget and controller").click()
    page.wait_for_selector("#set-rho .rail-term")
    room(page, "Runs")
    page.wait_for_selector(".runs-run")
    room(page, "Guide")
    page.wait_for_selector("#guide-glossary h3")
    linked = set(
        page.evaluate("[...document.querySelectorAll('a[data-term]')].map((one) => one.dataset.term)")
    )
    entries = {text.strip() for text in page.locator("#guide-glossary h3").all_text_contents()}
    assert len(linked) > 20
    assert linked <= entries, linked - entries


def test_the_tour_goes_to_its_end_with_one_key(page):
    page.locator(".scope-tour-start").click()
    panel = page.locator(".scope-tour")
    panel.wait_for()
    seen = []
    while panel.is_visible():
        seen.append(panel.locator("h3").inner_text())
        assert page.locator(".scope-toured").count() == 1
        page.keyboard.press("Enter")
        page.wait_for_timeout(50)
    assert len(seen) == len(set(seen)) == 7
    state = page.evaluate("rcrScope.state")
    assert state["patch"] is not None and state["layer"] == 3 and state["a"] == "5-ten-objects-rcr"


def test_the_guide_starts_the_tour_too(page):
    room(page, "Guide")
    page.locator("#tour").click()
    page.locator(".scope-tour").wait_for()
