"""The page starts on the local address only and says honestly what is there."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import gradio as gr
import pytest

import app

ROOT = Path(app.__file__).parent


@pytest.fixture
def page():
    page = app.build_page()
    page.launch(server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, run_history=False)
    yield page
    page.close()


def test_it_serves_and_says_what_is_missing(page):
    assert page.local_url.startswith("http://127.0.0.1:")
    with urlopen(page.local_url) as answer:
        assert answer.status == 200
        served = answer.read().decode()
    assert "RCR Scope" in served
    assert "The interactive page is not built yet" in served


def test_it_sends_no_analytics():
    assert isinstance(app.build_page(), gr.Blocks)
    assert app.build_page().analytics_enabled is False


def test_the_commands_on_the_page_name_files_that_exist():
    for word in app.WHAT_IS_HERE.split():
        if word.startswith("assets/"):
            assert (ROOT / word).is_file()
