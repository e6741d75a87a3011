"""A page that follows a run gets every step exactly once, and knows how the run is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load

from rcr_core.runs import StoreLimits
from rcr_core.web.packing import pack
from tests.app.web_samples import (
    HEADS,
    LAYERS,
    OWNER,
    PATCHES,
    PNG,
    SELECT,
    geometry,
    record,
    sample_trace,
    unpack,
    wait_until,
)

PER_STEP = [
    "logprob",
    "top_ids",
    "top_logprob",
    "drift",
    "tau",
    "fire",
    "mass",
    "map_mean",
    "map_mean_scale",
    "drift_exact",
    "recall",
    "map_layer_scale",
    "missed_layer_scale",
    "map_full_scale",
    "map_head_scale",
]


def selections(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct selections of the scripted steps in the order of first use, and each layer-step's row."""
    rows, chosen = [], np.full((steps, LAYERS), -1)
    for step in range(steps):
        for layer in range(1, LAYERS):  # layer 0 keeps its whole prefix
            selection = record(step).selected[layer].tolist()
            if selection not in rows:
                rows.append(selection)
            chosen[step, layer] = rows.index(selection)
    return np.array(rows), chosen


def batch(client, run, since: int = 0, **query):
    answer = client.get(f"/scope/runs/{run.id}/steps", params={"from": since, **query})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    return unpack(answer.content)


def test_the_whole_run_in_one_batch(client, store):
    run = store.add(OWNER, sample_trace(7), label="seven")
    metadata, state, arrays = batch(client, run)
    assert metadata["format"] == "rcr-steps"
    expected = [record(step) for step in range(7)]
    rows, chosen = selections(7)
    assert len(rows) > 3
    np.testing.assert_array_equal(arrays["tokens"], [one.token for one in expected])
    for name in PER_STEP:
        np.testing.assert_array_equal(arrays[name], np.stack([getattr(one, name) for one in expected]), name)
    np.testing.assert_array_equal(arrays["selected"], rows)
    np.testing.assert_array_equal(arrays["selected_row"], chosen)
    np.testing.assert_array_equal(arrays["patch_box"], geometry().box)
    np.testing.assert_array_equal(arrays["patch_position"], geometry().position)
    assert arrays["image"].tobytes() == PNG
    assert set(arrays) == {"tokens", "selected", "selected_row", "image", *PER_STEP} | {
        f"patch_{name}" for name in ("box", "position", "image", "frame", "level")
    }
    assert (state["from"], state["to"], state["total"], state["selected_from"]) == (0, 7, 7, 0)
    assert (state["id"], state["label"], state["kind"], state["policy"]) == (run.id, "seven", "file", "rcr")
    assert (state["status"], state["stop_reason"], state["error"]) == ("done", "length", None)
    assert state["token_text"] == [one.text for one in expected]
    assert state["top_text"] == [list(one.top_text) for one in expected]
    assert state["seconds"] == [0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25]
    assert state["meta"]["prompt"] == "Déscribe."
    assert state["meta"]["settings"] == {"select": SELECT, "window": 2}
    assert not {"token_text", "top_text", "timings"} & set(state["meta"])


def test_the_library_reads_the_same_batch(client, store):
    run = store.add(OWNER, sample_trace(7), label="seven")
    data = client.get(f"/scope/runs/{run.id}/steps").content
    by_hand, by_library = unpack(data)[2], load(data)
    assert by_hand.keys() == by_library.keys()
    for name, array in by_library.items():
        assert array.dtype == by_hand[name].dtype
        np.testing.assert_array_equal(array, by_hand[name], name)


def test_arrays_that_no_run_has_yet_lie_on_their_boundaries_too():
    arrays = {"b": np.arange(3, dtype=np.uint8), "a": np.arange(3, dtype="<u2"), "c": np.ones((0, 4), "<f4")}
    arrays["e"] = np.arange(24, dtype="<i4").reshape(4, 6)[1:, ::2]  # not contiguous
    data = pack("x", {"name": "猫"}, arrays)
    metadata, state, read = unpack(data)
    assert list(read) == ["c", "e", "a", "b"]
    assert state == {"name": "猫"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        np.testing.assert_array_equal(load(data)[name], array)


@pytest.mark.parametrize("since", [1, 3, 6, 7])
def test_a_batch_from_a_step_on_has_only_what_is_new(client, store, since):
    run = store.add(OWNER, sample_trace(7), label="seven")
    _, state, arrays = batch(client, run, since)
    known = len(selections(since)[0])
    assert (state["from"], state["to"], state["selected_from"]) == (since, 7, known)
    np.testing.assert_array_equal(arrays["selected"].reshape(-1, HEADS, SELECT), selections(7)[0][known:])
    np.testing.assert_array_equal(arrays["selected_row"], selections(7)[1][since:])
    assert arrays["map_mean"].shape == (7 - since, PATCHES)
    assert len(state["token_text"]) == len(state["seconds"]) == len(state["top_text"]) == 7 - since
    assert state["meta"] is None
    assert not any(name.startswith("patch_") or name == "image" for name in arrays)


def test_batches_of_a_growing_run_laid_end_to_end_are_its_trace(client, growing):
    run, script = growing(20, OWNER)
    batches, since = [], 0
    for released in (0, 1, 4, 1, 0, 9, 5):
        script.release(released)
        wait_until(lambda until=since + released: run.steps == until)
        batches.append(batch(client, run, since))
        since = batches[-1][1]["to"]
    wait_until(lambda: run.finished)
    trace = run.trace()
    assert since == trace.steps == 20
    with_rows = [arrays for _, state, arrays in batches if state["to"] > state["from"]]
    assert len(with_rows) == 5
    for name in ("tokens", "selected_row", "selected", *PER_STEP):
        joined = np.concatenate([arrays[name] for arrays in with_rows])
        assert joined.dtype == trace.arrays()[name].dtype
        np.testing.assert_array_equal(joined, trace.arrays()[name], name)
    words = [word for _, state, _ in batches for word in state["token_text"]]
    assert tuple(words) == trace.meta.token_text
    seconds = [second for _, state, _ in batches for second in state["seconds"]]
    assert seconds == [trace.meta.timings["prefill"], *trace.meta.timings["steps"]]


def test_a_run_that_has_not_begun_has_a_state_and_no_arrays(client, growing):
    for _ in range(StoreLimits().concurrent):
        growing(1, OWNER)
    run, _ = growing(1, OWNER)
    wait_until(lambda: run.status == "queued" and run.place == 1)
    _, state, arrays = batch(client, run)
    assert arrays == {}
    assert (state["status"], state["place"], state["from"], state["to"], state["total"]) == (
        "queued",
        1,
        0,
        0,
        0,
    )
    assert (state["meta"], state["token_text"], state["selected_from"]) == (None, [], 0)
    assert client.get(f"/scope/runs/{run.id}/steps", params={"from": 1}).status_code == 400


def test_a_file_without_timings_and_names_of_tokens(client, store):
    trace = sample_trace(3)
    bare = replace(trace.meta, timings={"prefill": 0.25, "steps": []}, top_text=())
    trace = replace(trace, meta=bare)
    _, state, _ = batch(client, store.add(OWNER, trace, label="plain"), 0)
    assert state["seconds"] == [0.25, None, None]
    assert state["top_text"] is None


@pytest.mark.parametrize(
    "query",
    ["from=8", "from=-1", "from=x", "from=1.5", "from=", "from=99999999999999999999", "from=٣", "from=1_0"]
    + ["wait=11", "wait=-1", "wait=nan", "wait=inf", "wait=1e1", "wait=soon"],
)
def test_a_wrong_number_is_refused_in_words(client, store, query):
    run = store.add(OWNER, sample_trace(7), label="seven")
    answer = client.get(f"/scope/runs/{run.id}/steps?{query}")
    assert answer.status_code == 400
    assert query.split("=")[0] in answer.json()["error"]


def test_a_batch_says_whether_the_run_is_the_readers_own(client, stranger, growing):
    """Who reads a live run by its link gets no button to stop it."""
    run, script = growing(3, OWNER)
    script.release(1)
    wait_until(lambda: run.steps == 1)
    assert batch(client, run)[1]["mine"] is True
    assert batch(stranger, run, key=run.key)[1]["mine"] is False
