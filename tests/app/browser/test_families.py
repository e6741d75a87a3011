"""Every family of models through the page: picked, run on a picture, and shown as it was recorded."""

from __future__ import annotations

import numpy as np
import pytest

import app
from rcr_core.runs import RunStore
from tests.app.browser import truths
from tests.app.browser.conftest import Watched, free_port
from tests.app.browser.form import (
    choose_file,
    press_run,
    short_runs,
    shown_run,
    wait_for_end,
    wait_until_idle,
)
from tests.app.browser.pictures import good_pictures
from tests.core.tiny import ALL_FAMILIES, build_tiny


@pytest.fixture(scope="module")
def runs():
    store = RunStore()
    yield store
    store.close()


@pytest.fixture(scope="module")
def ready(chromium, runs, tmp_path_factory):
    """A page whose server has a model of every family, with a picture chosen and short runs asked for."""
    root = tmp_path_factory.mktemp("families")
    asked = [part for one in ALL_FAMILIES for part in ("--model", str(build_tiny(one, root / one)))]
    options = app.parser().parse_args(["--port", str(free_port()), "--device", "cpu", *asked])
    served = app.serve(options, runs, prevent_thread_lock=True)
    watched = Watched(chromium, served.local_url)
    page = watched.page(served.local_url)
    choose_file(page, good_pictures(root)["CMYK JPEG"][0])
    short_runs(page)
    yield page
    for context in watched.contexts:
        context.close()
    served.close()
    watched.check()


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_a_run_of_every_family_is_on_the_page_as_it_was_recorded(ready, runs, family):
    ready.locator("#model input").click()
    ready.get_by_role("option", name=family, exact=True).click()
    ready.wait_for_function(
        """(name) => document.querySelector('#model input').value === name
          && /^On cpu/.test(document.querySelector('#model-state').textContent.trim())""",
        arg=family,
    )
    press_run(ready)
    wait_for_end(ready)
    wait_until_idle(runs, ready)
    run = shown_run(runs, ready, "a")
    trace = run.trace()
    assert run.status == "done", run.error
    assert (trace.meta.model, trace.meta.family, trace.meta.policy) == (family, family, "rcr")
    patches = np.flatnonzero(~np.isnan(trace.patch_box).any(1))
    assert len(patches) > 8  # rectangles on the picture
    step = trace.steps - 1
    for patch in patches[:: max(len(patches) // 5, 1)]:
        shown = ready.evaluate("(of) => rcrScope.value('a', ...of)", [step, "mean", int(patch)])
        assert shown == truths.value(trace, step, "mean")[patch]
    assert ready.evaluate("rcrScope.text('a')") == trace.text
    assert ready.locator("#scope canvas").first.is_visible()
