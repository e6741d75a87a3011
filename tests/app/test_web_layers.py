"""The maps per layer come in pages of exactly the steps asked for, and are fetched once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load

from tests.app.web_samples import OWNER, record, sample_trace, unpack, wait_until

NAMES = ("map_layer", "missed_layer", "map_full", "map_head")


def page(client, run, begin, end, **sent):
    return client.get(f"/scope/runs/{run.id}/layers?from={begin}&to={end}", **sent)


def test_a_page_holds_the_maps_of_its_steps(client, store):
    run = store.add(OWNER, sample_trace(7), label="seven")
    answer = page(client, run, 2, 6)
    metadata, state, arrays = unpack(answer.content)
    assert metadata["format"] == "rcr-layers"
    assert state == {"id": run.id, "from": 2, "to": 6}
    assert set(arrays) == {*NAMES, *(f"{name}_scale" for name in NAMES)}
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, [getattr(record(step), name) for step in range(2, 6)], name)
        np.testing.assert_array_equal(load(answer.content)[name], array)


def test_a_run_without_diagnostics_has_pages_without_them(client, store):
    trace = sample_trace(3)
    lean = {f"{name}{end}": None for name in ("map_head", "map_full") for end in ("", "_scale")}
    run = store.add(OWNER, replace(trace, **lean), label="lean")
    assert set(unpack(page(client, run, 0, 3).content)[2]) == {
        "map_layer",
        "map_layer_scale",
        "missed_layer",
        "missed_layer_scale",
    }


@pytest.mark.parametrize(("begin", "end"), [(0, 8), (6, 8), (7, 8), (3, 3), (5, 2), (0, 65), (900, 901)])
def test_a_page_beyond_the_steps_or_the_size_is_refused(client, store, begin, end):
    run = store.add(OWNER, sample_trace(7), label="seven")
    answer = page(client, run, begin, end)
    assert answer.status_code == 416
    assert str(end) in answer.json()["error"]


def test_a_page_has_at_most_64_steps(client, store):
    run = store.add(OWNER, sample_trace(70), label="long")
    assert unpack(page(client, run, 3, 67).content)[2]["map_layer"].shape[0] == 64
    assert page(client, run, 3, 68).status_code == 416


@pytest.mark.parametrize("query", ["from=0", "to=2", "", "from=a&to=2", "from=-1&to=2", "from=0&to=2.0"])
def test_a_page_without_its_bounds_is_refused(client, store, query):
    run = store.add(OWNER, sample_trace(7), label="seven")
    assert client.get(f"/scope/runs/{run.id}/layers?{query}").status_code == 400


def test_a_page_is_kept_for_good_and_the_same_while_the_run_goes_on(client, growing):
    run, script = growing(5, OWNER)
    script.release(3)
    wait_until(lambda: run.steps == 3)
    early = page(client, run, 0, 3)
    assert page(client, run, 0, 4).status_code == 416
    script.release(2)
    wait_until(lambda: run.finished)
    late = page(client, run, 0, 3)
    assert early.content == late.content
    assert early.headers["etag"] == late.headers["etag"] != page(client, run, 0, 4).headers["etag"]
    assert early.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert early.headers["vary"] == "X-Scope-Owner"
    kept = page(client, run, 0, 3, headers={"If-None-Match": early.headers["etag"]})
    assert (kept.status_code, kept.content) == (304, b"")
    assert kept.headers["cache-control"] == early.headers["cache-control"]


def test_two_runs_never_share_a_page(client, store):
    one, other = (store.add(OWNER, sample_trace(3), label=label) for label in "ab")
    assert page(client, one, 0, 2).headers["etag"] != page(client, other, 0, 2).headers["etag"]


def test_a_public_run_of_the_same_name_after_a_new_start_is_not_mistaken_for_the_old_one(client, store):
    answers = []
    for _ in range(2):
        run = store.add("", sample_trace(3), label="a", kind="example", public=True, run_id="example")
        file = client.get(f"/scope/runs/{run.id}/trace.rcr")
        answers.append((page(client, run, 0, 2), file))
    (old, old_file), (new, new_file) = answers
    assert old.headers["etag"] != new.headers["etag"]
    assert old_file.headers["etag"] != new_file.headers["etag"]
    assert old.headers["cache-control"] == "private, no-cache"
