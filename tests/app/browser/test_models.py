"""The picker of models: for those who have several."""

from __future__ import annotations

import pytest

import app
from rcr_core.runs import RunStore
from tests.app.browser.conftest import Watched, free_port
from tests.app.browser.form import (
    choose_file,
    press_run,
    shown_run,
    wait_for_end,
    wait_until_idle,
)
from tests.app.browser.pictures import good_pictures
from tests.app.model_folders import three_models


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    store = RunStore()
    folders = three_models(tmp_path_factory.mktemp("models"))
    asked = [part for folder in folders for part in ("--model", folder)]
    options = app.parser().parse_args(["--port", str(free_port()), "--device", "cpu", *asked])
    page = app.serve(options, store, prevent_thread_lock=True)
    yield page.local_url, store
    page.close()
    store.close()


def pick(page, name: str) -> None:
    page.locator("#model input").click()
    page.get_by_role("option", name=name).click()


def says(page, words: str) -> None:
    page.wait_for_function(
        "(words) => document.querySelector('#model-state').textContent.includes(words)", arg=words
    )


def test_another_model_is_chosen_and_run_by_everyone(chromium, served, tmp_path):
    address, store = served
    watched = Watched(chromium, address)
    page, other = watched.page(address), watched.page(address)
    for one in (page, other):
        says(one, "On cpu, float32: 4 layers, 2 KV heads")
    pick(page, "broken")
    says(page, "A weight file of broken is cut off or broken")
    assert page.locator("#model-state [role=alert]").is_visible()
    pick(page, "llava_next")
    for one in (page, other):
        says(one, "On cpu")
        one.wait_for_function("document.querySelector('#model input').value === 'llava_next'")
    choose_file(page, good_pictures(tmp_path)["CMYK JPEG"][0])
    press_run(page)
    wait_for_end(page)
    wait_until_idle(store, page)
    assert shown_run(store, page, "a").trace().meta.model == "llava_next"
    for context in watched.contexts:
        context.close()
    watched.check()


def test_one_model_needs_no_picker(page):
    says(page, "bundled-captioner on cpu")
    assert not page.locator("#model input").is_visible()
