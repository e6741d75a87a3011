"""The tab Study: a study is started, followed and stopped, and its rows open where their texts part."""

from __future__ import annotations

import re

import pytest

from rcr_core.findings import read_results
from tests.app.browser.contrast import CONTRASTS
from tests.app.browser.form import expecting, own_runs
from tests.app.browser.test_accessibility import LEAST_CONTRAST, MISSED, REACHED, choose, unnamed

START = "Start the study"
STANDING = ".study-standing"
OWN = f"document.querySelector('{STANDING}').checkVisibility()"  # not that of a study for everyone
OVER = f"{OWN} && /^(done|stopped)/.test(document.querySelector('{STANDING}').textContent)"
DRAWN = "document.querySelectorAll('.study-figure .js-plotly-plot').length"
SETTLED = """
() => [...document.querySelectorAll(".study-figure")].every((one) =>
  one.hidden || one.querySelector(".js-plotly-plot .main-svg"))
"""
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def study(page):
    """The tab, ready for a study of two scenes under three policies with short texts."""
    open_tab(page)
    page.wait_for_selector(".study-form")
    field(page, "count").fill("2")
    page.locator(".study-form summary", has_text="Settings").click()
    field(page, "max_new_tokens").fill("40")
    yield page
    own = page.locator(".study-stop:visible")
    if own.count():
        own.click()
        page.wait_for_function(OVER)


def open_tab(page):
    page.get_by_role("tab", name="Study").click()
    page.wait_for_selector(".study-form", state="attached")


def field(page, name: str):
    return page.locator(f".study-form [name={name}]")


def start(page):
    page.get_by_role("button", name=START).click()
    page.wait_for_function(OWN)


def finish(page):
    page.wait_for_function(OVER, timeout=90_000)
    page.wait_for_selector(".study-images tbody tr", timeout=30_000)


def rows(page) -> list[list[str]]:
    return [text.split("\t") for text in page.locator(".study-images tbody tr").all_inner_texts()]


def read(page, button) -> bytes:
    with page.expect_download() as download:
        button.click()
    return download.value.path().read_bytes()


def test_a_study_goes_from_the_form_to_a_row_in_the_scope(study, store, tmp_path):
    assert study.locator(".study-sum").inner_text() == "2 × 3 = 6 runs"
    start(study)
    bar = study.locator(".study-progress")
    study.wait_for_function("document.querySelector('.study-progress').value > 0", timeout=60_000)
    assert bar.get_attribute("max") == "6"
    assert re.match(r"[1-6] of 6 runs", study.locator(STANDING).inner_text())
    finish(study)
    assert study.locator(STANDING).inner_text() == "done, 6 runs"
    study.wait_for_function(f"{DRAWN} > 1")
    study.wait_for_function("document.querySelectorAll('.study-images tbody tr').length === 4")
    data = read(study, study.get_by_role("button", name="Results (JSONL)"))
    (tmp_path / "results.jsonl").write_bytes(data)
    found = {(row.sample, row.policy): row for row in read_results([tmp_path / "results.jsonl"])}
    assert len(found) == 6
    row, reference = found["scene 1", "bacon"], found["scene 1", "full"]
    parts = next(
        at for at, (one, other) in enumerate(zip(row.tokens, reference.tokens, strict=False)) if one != other
    )
    line = study.locator(".study-images tbody tr", has_text="scene 1").filter(has_text="BACON")
    assert f"step {parts}" in line.inner_text() and f"{row.fidelity:.3f}"[1:] in line.inner_text()
    line.locator("td").nth(1).click()
    study.wait_for_function("rcrScope.steps.a > 0 && rcrScope.state.b", timeout=30_000)
    study.wait_for_function(f"rcrScope.painted === {parts} && rcrScope.steps.a > {parts}", timeout=30_000)
    study.wait_for_function("Object.values(rcrScope.status).every((status) => status === 'done')")
    assert (study.evaluate("rcrScope.text('a')"), study.evaluate("rcrScope.text('b')")) == (
        row.text,
        reference.text,
    )
    assert study.evaluate("rcrScope.state.step") == parts
    study.wait_for_selector(".scope-word.scope-current.scope-differs")
    assert {run.policy for run in own_runs(store, study)} == {"bacon", "full"}


def test_a_mark_of_an_image_opens_its_run(study):
    start(study)
    finish(study)
    study.wait_for_function(SETTLED)
    figure = study.locator(".study-figure", has_text="RCR against BACON")
    figure.scroll_into_view_if_needed()
    figure.locator(".scatterlayer .point").first.wait_for()
    box = figure.locator(".scatterlayer .point").first.bounding_box()
    study.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    study.wait_for_timeout(300)
    study.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    study.wait_for_function("rcrScope.state.a && rcrScope.state.b")
    study.wait_for_function("document.querySelector('#scope .scope-transport').checkVisibility()")


def test_stop_keeps_the_rows_and_a_reload_finds_the_study(study, address):
    field(study, "count").fill("20")
    field(study, "max_new_tokens").fill("320")
    start(study)
    study.wait_for_function("document.querySelector('.study-progress').value > 0", timeout=60_000)
    assert study.get_by_role("button", name="Your study is running").is_disabled()
    study.reload()
    study.wait_for_selector(".scope-transport")
    open_tab(study)
    study.wait_for_selector(".study-stop:visible")
    assert "20 scenes, 3 policies" in study.locator(".study-title").inner_text()
    study.locator(".study-stop").click()
    study.wait_for_function(OVER, timeout=3000)
    told = study.locator(STANDING).inner_text()
    assert re.match(r"stopped after \d+ of 60 runs", told)
    assert study.locator(".study-progress").is_hidden()
    study.get_by_role("button", name="Drop", exact=True).click()
    study.get_by_role("button", name="Keep it").click()
    assert study.get_by_role("button", name="Drop", exact=True).is_visible()
    study.get_by_role("button", name="Drop", exact=True).click()
    study.get_by_role("button", name="Drop it").click()
    study.wait_for_function("!/20 scenes/.test(document.querySelector('.study-names').textContent)")


def test_what_is_out_of_range_is_said_beside_the_form(study, watched):
    field(study, "select").fill("0")
    with expecting(watched, "409"):
        study.get_by_role("button", name=START).click()
        error = study.locator(".study-error")
        error.wait_for()
    assert error.inner_text() == "select must be a whole number in [1, 65536], got 0"
    assert error.get_attribute("role") == "alert"
    field(study, "select").fill("64")
    start(study)
    finish(study)
    assert not error.inner_text()


def test_another_persons_study_is_not_seen_and_has_to_be_waited_for(study, watched, address):
    field(study, "count").fill("20")
    start(study)
    stranger = watched.page(address)
    open_tab(stranger)
    assert "20 scenes" not in stranger.locator(".study-names").inner_text()
    with expecting(watched, "429"):
        stranger.get_by_role("button", name=START).click()
        stranger.locator(".study-error").wait_for()
    assert "another person's study is running" in stranger.locator(".study-error").inner_text()
    stranger.close()


def test_ones_own_pictures_are_studied(study, watched):
    study.get_by_label("My pictures").check()
    upload = {"name": "words.png", "mimeType": "image/png", "buffer": b"words"}
    with expecting(watched, "415"):
        study.locator(".study-form input[type=file]").set_input_files(upload)
        study.wait_for_function("/not a picture/.test(document.querySelector('.study-form').textContent)")
    study.locator(".study-form input[type=file]").set_input_files("assets/examples/1-four-objects.png")
    study.wait_for_selector(".study-pictures li")
    assert study.locator(".study-sum").inner_text() == "1 × 3 = 3 runs"
    start(study)
    finish(study)
    assert {row[0] for row in rows(study)} == {"1-four-objects.png"}
    assert study.locator(".study-pictures li").count() == 0
    tables = study.locator(".study-table-part")
    text = read(study, tables.first.get_by_text("LaTeX")).decode()
    assert text.startswith("\\begin{table}")
    assert (
        read(study, study.get_by_role("button", name="Report (HTML)")).lower().startswith(b"<!doctype html")
    )


def test_rows_are_sorted_and_filtered(study):
    start(study)
    finish(study)
    study.wait_for_function("document.querySelectorAll('.study-images tbody tr').length === 4")
    study.locator(".study-images thead").get_by_role("button", name="Fidelity").click()
    fidelities = [float(row[2]) for row in rows(study)]
    assert fidelities == sorted(fidelities, reverse=True)
    study.get_by_label("policy whose images are listed").select_option("bacon")
    assert [row[1] for row in rows(study)] == ["BACON", "BACON"]


# ---- for everybody


@pytest.fixture
def done(study):
    """A page with a small study that is over and drawn."""
    start(study)
    finish(study)
    study.evaluate("window.scrollTo(0, 1e6)")
    study.wait_for_timeout(500)
    study.evaluate("window.scrollTo(0, 0)")
    study.wait_for_function(SETTLED)
    return study


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_and_every_control_has_a_name(done, theme):
    choose(done, theme)
    for summary in done.locator(".study-form summary").all():
        if not summary.evaluate("(one) => one.parentElement.open"):
            summary.click()
    assert unnamed(done) == []
    found = done.evaluate(CONTRASTS)
    assert len(found) > 50
    assert {text: ratio for text, ratio in found if ratio < LEAST_CONTRAST} == {}


def test_tab_goes_through_everything(done):
    for _ in range(200):
        done.keyboard.press("Tab")
        now = done.evaluate(REACHED)
        assert now["seen"] or not now["ours"] or "modebar" in now["html"], now["html"]
        if now["again"]:
            break
    else:
        pytest.fail("the focus does not come round")
    missed = [html for html in done.evaluate(MISSED) if 'type="radio"' not in html]  # arrows go through these
    assert missed == []


def test_progress_is_said_but_not_every_run(study):
    start(study)
    spoken = study.locator(".study-head .scope-spoken")
    assert spoken.get_attribute("aria-live") == "polite"
    finish(study)
    study.wait_for_function(
        "/done, 6 runs/.test(document.querySelector('.study-head .scope-spoken').textContent)"
    )


def test_it_fits_a_narrow_screen(watched, address):
    page = watched.context(viewport={"width": 420, "height": 900}).new_page()
    page.goto(address)
    page.wait_for_selector(".scope-transport")
    open_tab(page)
    page.get_by_text("A study of your own").click()
    field(page, "count").fill("1")
    page.locator(".study-form summary", has_text="Settings").click()
    field(page, "max_new_tokens").fill("10")
    start(page)
    finish(page)
    page.wait_for_timeout(500)
    assert page.evaluate(WIDER) <= 0
    assert page.locator(".study-open button").first.is_visible()
