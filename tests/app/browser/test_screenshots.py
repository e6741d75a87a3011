"""The pictures in assets/screenshots show the page as it is: made here, and held against the page here.

`RCR_WRITE_SCREENSHOTS=1 bash tests/run tests/app/browser/test_screenshots.py` writes them anew.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).resolve().parents[3] / "assets" / "screenshots"
WRITE = os.environ.get("RCR_WRITE_SCREENSHOTS") == "1"
VIEW = "#a=5-ten-objects-rcr&b=5-ten-objects-bacon&s=42&l=5&p=104&f=0"
SHOTS = {
    "scope-light": ("light", 1400, 1180),
    "scope-dark": ("dark", 1400, 1180),
    "scope-narrow": ("light", 420, 900),
}
STUDY = (1400, 1000)
COARSE = (70, 60)  # pixels; what is left of a picture when the fonts of a machine no longer matter


@pytest.mark.parametrize("name", SHOTS)
def test_the_committed_picture_shows_the_page(watched, address, name):
    theme, width, height = SHOTS[name]
    page = watched.context(viewport={"width": width, "height": height}).new_page()
    page.goto(f"{address}?__theme={theme}{VIEW}")
    page.wait_for_function("window.rcrScope?.painted === 42 && rcrScope.value('b', 42, 5, 104) !== null")
    page.wait_for_function("document.querySelectorAll('#scenes img').length === 8")
    page.wait_for_function("document.querySelector('.scope-fidelity').textContent !== ''")
    if width < 500:
        page.locator(".scope-captions").scroll_into_view_if_needed()
        page.evaluate("window.scrollBy(0, 300)")
    page.wait_for_timeout(600)
    hold(name, page.screenshot(), (width, height))


def test_the_committed_picture_of_the_study_shows_its_tab(watched, address):
    width, height = STUDY
    page = watched.context(viewport={"width": width, "height": height}).new_page()
    page.goto(f"{address}?__theme=light")
    page.get_by_role("tab", name="Study").click()
    page.get_by_text("200 scenes, 200 questions, 10 policies").first.wait_for()
    page.wait_for_function("document.querySelectorAll('#study .main-svg').length >= 4")
    page.wait_for_timeout(600)
    hold("study", page.screenshot(), STUDY)


def hold(name, taken, size):
    """Hold a picture that was just taken against the committed one, or put it in its place."""
    if WRITE:
        (FOLDER / f"{name}.png").write_bytes(taken)
    committed = Image.open(FOLDER / f"{name}.png")
    assert committed.size == size
    difference = np.abs(coarse(committed) - coarse(Image.open(BytesIO(taken)))).mean()
    assert difference < 8, "the page has changed: write the screenshots anew (see the top of this file)"


def coarse(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB").resize(COARSE, Image.Resampling.BOX), np.float64)
