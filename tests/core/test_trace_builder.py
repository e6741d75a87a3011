"""A trace grows step by step, its numbers are those of a calculation by hand, its geometry paints."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from rcr_core.errors import TraceError
from rcr_core.trace import StepRecord, TraceBuilder, TraceMeta, VisualGeometry, read_trace, trace_bytes
from tests.core.trace_samples import PICTURES

F32, I32, U8 = np.float32, np.int32, np.uint8
LAYERS, HEADS, GROUPS, SELECT, PATCHES = 3, 2, 2, 2, 2


def small_meta(**changes) -> TraceMeta:
    """A model whose first layer keeps its whole prefix, on a prompt of T=10 with W=2."""
    values = {
        "model": "tiny",
        "family": "llava",
        "processor": "TinyProcessor",
        "prompt": "Describe.",
        "prompt_pieces": [],
        "policy": "rcr",
        "settings": {},
        "image_size": [(20, 30)],
        "prompt_length": 10,
        "prefix_length": 8,
        "window": 2,
        "layers": LAYERS,
        "kv_heads": HEADS,
        "query_groups": GROUPS,
        "head_dim": 4,
        "select": SELECT,
        "managed": [False, True, True],
    }
    return TraceMeta(**{**values, **changes})


def geometry(**changes) -> VisualGeometry:
    """The left and the right half of one image."""
    values = {
        "position": np.array([0, 1], I32),
        "image": np.zeros(2, I32),
        "frame": np.zeros(2, I32),
        "level": np.zeros(2, I32),
        "box": np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]], F32),
        "size": ((20, 30),),
    }
    return VisualGeometry(**{**values, **changes})


def record(step: int, **changes) -> StepRecord:
    """A step at which the whole-prefix layer holds rubbish where its selection would stand."""
    selected = np.array([[[-1, 99], [-1, 99]], [[0, 1], [2, 3]], [[4, 5], [6, 7]]], I32)
    values = {
        "step": step,
        "token": 10 + step,
        "text": f"w{step}",
        "logprob": -0.5,
        "top_ids": np.array([1, 2, 3, 4, 5], I32),
        "top_logprob": np.full(5, -1, F32),
        "drift": np.full(LAYERS, step / 8, F32),
        "tau": np.full(LAYERS, 0.03, F32),
        "fire": np.zeros(LAYERS, U8),
        "whole": np.array([1, 0, 0], U8),
        "selected": selected,
        "mass": np.full((LAYERS, 4), 0.25, F32),
        "map_mean": np.full(PATCHES, step, U8),
        "map_mean_scale": 0.5,
        "map_layer": np.full((LAYERS, PATCHES), step, U8),
        "map_layer_scale": np.ones(LAYERS, F32),
        "missed_layer": np.zeros((LAYERS, PATCHES), U8),
        "missed_layer_scale": np.ones(LAYERS, F32),
        "seconds": 1.0 + step,
    }
    return StepRecord(**{**values, **changes})


def built(*records: StepRecord, **meta) -> TraceBuilder:
    builder = TraceBuilder(small_meta(**meta), geometry())
    for item in records:
        builder.append(item)
    return builder


# Building


def test_before_the_first_step():
    trace = built().snapshot()
    assert (trace.steps, trace.text, trace.refresh_rate, trace.mean_drift, trace.tau_end) == (0, "", 0, 0, 0)
    assert trace.staleness() is None
    assert trace.map_layer.shape == (0, LAYERS, PATCHES) and trace.top_ids.shape == (0, 5)
    assert read_trace(trace_bytes(trace)).steps == 0


def test_appended_steps_stand_in_the_trace():
    trace = built(record(0), record(1, text=None), record(2)).snapshot("stop token")
    assert trace.tokens.tolist() == [10, 11, 12]
    assert trace.meta.token_text == ("w0", None, "w2") and trace.text == "w0w2"
    assert trace.drift.tolist() == [[0] * 3, [0.125] * 3, [0.25] * 3]
    assert trace.map_mean.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert trace.map_mean_scale.tolist() == [0.5] * 3
    assert trace.meta.stop_reason == "stop token"
    assert trace.meta.timings == {"prefill": 1, "steps": [2, 3]}
    assert trace.drift_exact is None


def test_names_and_maps_per_head_stand_in_the_trace():
    def with_heads(step):
        head = np.full((LAYERS, HEADS, PATCHES), step, U8)
        names = tuple(f"{step}{letter}" for letter in "abcde")
        return record(step, map_head=head, map_head_scale=np.full((LAYERS, HEADS), 0.5, F32), top_text=names)

    trace = built(with_heads(0), with_heads(1), scene={"seed": 7, "grid": 5, "count": 9}).snapshot()
    assert trace.map_head.shape == (2, LAYERS, HEADS, PATCHES)
    assert trace.map_head[:, 2, 1, 0].tolist() == [0, 1]
    assert trace.meta.top_text == (("0a", "0b", "0c", "0d", "0e"), ("1a", "1b", "1c", "1d", "1e"))
    assert trace.meta.scene == {"seed": 7, "grid": 5, "count": 9}
    assert read_trace(trace_bytes(trace)).meta == trace.meta
    plain = built(record(0)).snapshot()
    assert plain.map_head is None and plain.meta.top_text == ()


def test_a_trace_that_would_become_too_large_to_read_ends_in_words(monkeypatch):
    """Selections of 2 heads x 2 entries in 16 bits, 8 bytes each; every layer may have another one a step."""
    monkeypatch.setattr("rcr_core.trace.builder.MAX_SELECTED_BYTES", 2 * LAYERS * 8)

    def selecting(step):
        entry = 3 * step + np.arange(LAYERS, dtype=I32)[:, None, None]
        return record(step, selected=np.tile(entry, (1, HEADS, 2)), whole=np.zeros(LAYERS, U8))

    builder = built(selecting(0), selecting(1))
    with pytest.raises(TraceError, match="step 2: the selections of the run take") as full:
        builder.append(record(2))
    assert full.value.hint
    trace = builder.snapshot("error")
    assert trace.steps == 2 and trace.selected[:, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert read_trace(trace_bytes(trace)).steps == 2


def test_timings_of_the_caller_add_or_replace():
    trace = built(record(0), record(1)).snapshot(timings={"prefill": 7, "load": 3})
    assert trace.meta.timings == {"prefill": 7, "steps": [2], "load": 3}


def test_each_selection_is_stored_once_in_order_of_use():
    first, second = record(0).selected[1], record(0).selected[2]
    third = np.array([[7, 6], [0, 1]], I32)
    changed = np.stack([third, second, third])  # the first layer is whole, its row must not be stored
    trace = built(record(0), record(1), record(2, selected=changed)).snapshot()
    np.testing.assert_array_equal(trace.selected, [first, second, third])
    assert trace.selected.dtype == np.uint16
    assert trace.selected_row.tolist() == [[-1, 0, 1], [-1, 0, 1], [-1, 1, 2]]
    assert trace.selection(0, 0) is None
    np.testing.assert_array_equal(trace.selection(2, 2), third)
    assert trace.selection(2, 2).dtype == np.int64


def test_long_prefixes_take_wider_indices():
    selected = np.full((LAYERS, HEADS, SELECT), 69_999, I32)
    trace = built(record(0, selected=selected), prompt_length=70_002, prefix_length=70_000).snapshot()
    assert trace.selected.dtype == np.uint32 and trace.selected.max() == 69_999
    assert read_trace(trace_bytes(trace)).selected.max() == 69_999


def test_an_empty_selection_is_a_selection():
    nothing = np.zeros((LAYERS, HEADS, 0), I32)
    trace = built(record(0, selected=nothing), record(1, selected=nothing), select=0).snapshot()
    assert read_trace(trace_bytes(trace)).selection(1, 1).shape == (HEADS, 0)


def test_fewer_than_five_top_tokens():
    few = {"top_ids": np.array([1, 2], I32), "top_logprob": np.full(2, -1, F32)}
    builder = built(record(0, **few))
    with pytest.raises(TraceError, match="top_ids"):
        builder.append(record(1))
    builder.append(record(1, **few))
    assert builder.snapshot().top_ids.shape == (2, 2)


def test_a_snapshot_stays_while_the_run_goes_on():
    """After several growths of the buffers, each early snapshot equals a run that ended there."""
    records = [record(step, selected=(record(0).selected + step) % 8) for step in range(70)]
    builder, early = built(), []
    for item in records:
        builder.append(item)
        early.append(builder.snapshot())
    for steps in (1, 16, 17, 33, 70):
        assert trace_bytes(early[steps - 1]) == trace_bytes(built(*records[:steps]).snapshot())
    assert early[5].steps == 6 and not early[5].drift.flags.writeable


def test_a_record_array_may_be_reused_by_the_engine():
    drift = np.zeros(LAYERS, F32)
    builder = built(record(0, drift=drift))
    drift[:] = 9
    assert builder.snapshot().drift.tolist() == [[0, 0, 0]]


def test_a_reader_beside_the_writer():
    """Snapshots from a second thread are whole: valid traces whose steps never go back."""
    builder, seen, failures = built(), [], []
    done = threading.Event()

    def read():
        try:
            while not done.is_set():
                trace = builder.snapshot()
                seen.append(trace.steps)
                assert trace.tokens.tolist() == list(range(10, 10 + trace.steps))
        except Exception as error:  # handed to the test's own thread
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(200):
        builder.append(record(step))
    done.set()
    reader.join(10)
    assert not failures and seen == sorted(seen)
    assert builder.snapshot().steps == 200


BAD_RECORDS = {
    "step": ({"step": 3}, "expected the record of step 1, got that of step 3"),
    "token": ({"token": -1}, "step 1: token must be a whole number"),
    "text": ({"text": 3}, "text must be text"),
    "seconds": ({"seconds": -1.0}, "seconds must be"),
    "logprob": ({"logprob": float("nan")}, "logprob holds NaN"),
    "shape": ({"drift": np.zeros(2, F32)}, r"drift must be float32 of shape \[3\], got float32 \[2\]"),
    "dtype": ({"tau": np.zeros(LAYERS)}, "tau must be float32"),
    "not an array": ({"mass": [[0.25] * 4] * LAYERS}, "mass must be float32"),
    "NaN": ({"mass": np.full((LAYERS, 4), np.nan, F32)}, "mass holds NaN"),
    "fire": ({"fire": np.full(LAYERS, 2, U8)}, "fire must be in"),
    "selected shape": ({"selected": np.zeros((LAYERS, HEADS, 3), I32)}, "selected must be int32 of shape"),
    "selected value": (
        {"selected": np.full((LAYERS, HEADS, SELECT), 8, I32)},
        r"selected must be in \[0, 7\]",
    ),
    "whole": ({"whole": np.zeros(LAYERS, bool)}, "whole must be uint8"),
    "new diagnostic": ({"recall": np.zeros(LAYERS, F32)}, "recall must be given at every step"),
    "head map without scale": ({"map_head": np.zeros((LAYERS, HEADS, PATCHES), U8)}, "go together"),
    "new head map": (
        {
            "map_head": np.zeros((LAYERS, HEADS, PATCHES), U8),
            "map_head_scale": np.ones((LAYERS, HEADS), F32),
        },
        "map_head must be given at every step",
    ),
    "new names": ({"top_text": ("a",) * 5}, "top_text must be given at every step"),
    "too few names": ({"top_text": ("a",) * 4}, "top_text must name 5 tokens"),
    "name a number": ({"top_text": ("a", "b", "c", "d", 5)}, "must be text"),
    "name too long": ({"top_text": ("x" * 33, "b", "c", "d", "e")}, "at most 32 characters"),
    "map without scale": ({"map_full": np.zeros((LAYERS, PATCHES), U8)}, "go together"),
}


@pytest.mark.parametrize(("changes", "message"), BAD_RECORDS.values(), ids=BAD_RECORDS.keys())
def test_a_bad_record_is_refused_and_changes_nothing(changes, message):
    builder = built(record(0))
    before = trace_bytes(builder.snapshot())
    with pytest.raises(TraceError, match=message):
        builder.append(replace(record(1), **changes))
    assert trace_bytes(builder.snapshot()) == before
    builder.append(record(1))
    assert builder.snapshot().steps == 2


def test_metadata_and_geometry_must_fit():
    with pytest.raises(TraceError, match="images"):
        TraceBuilder(small_meta(image_size=[(1, 1)]), geometry())
    with pytest.raises(TraceError, match="patch_position"):
        TraceBuilder(small_meta(), geometry(position=np.array([0, 10], I32)))
    with pytest.raises(TraceError, match="PNG"):
        TraceBuilder(small_meta(), geometry(), (b"GIF89a",))


def test_pictures_lie_one_after_another():
    three = {"image_size": [(20, 30), (2, 3), (1, 1)]}
    places = geometry(size=tuple(three["image_size"]))
    trace = TraceBuilder(small_meta(**three), places, PICTURES).snapshot()
    assert trace.image.tobytes() == b"".join(PICTURES)
    assert trace.image_end.tolist() == np.cumsum([len(picture) for picture in PICTURES]).tolist()
    with pytest.raises(TraceError, match="image_end must have shape"):
        TraceBuilder(small_meta(**three), places, PICTURES[:2])
    with pytest.raises(TraceError, match="at most 256 pictures"):
        TraceBuilder(small_meta(**three), places, PICTURES[:1] * 257)


# Numbers of a trace


def test_rate_drift_and_tau_count_decisions_only():
    """Neither the prefill nor the unmanaged layer takes part: 1 of 4 fires, the mean is of 1, 2, 3, 6."""
    trace = built(
        record(0, fire=np.ones(3, U8), drift=np.full(3, 50, F32)),
        record(1, fire=np.array([1, 1, 0], U8), drift=np.array([9, 1, 2], F32)),
        record(2, drift=np.array([9, 3, 6], F32), tau=np.array([0.9, 0.5, 0.25], F32)),
    ).snapshot()
    assert trace.refresh_rate == 0.25
    assert trace.mean_drift == 3
    assert trace.tau_end == 0.25


def test_no_managed_layer_means_no_rate():
    trace = built(record(0), record(1), managed=[False] * 3).snapshot()
    assert (trace.refresh_rate, trace.mean_drift, trace.tau_end) == (0, 0, 0)


def test_staleness_by_hand():
    """From step 1 to 2 to 3, layer 0 never changes, layer 1 changes one of four heads once, layer 2 all."""
    top = np.zeros((4, LAYERS, HEADS * GROUPS), I32)
    top[0] = 7  # the prefill, which is left out
    top[3, 1, 2] = 5
    top[:, 2] = np.arange(4)[:, None]
    steps = [record(step, top_position=top[step]) for step in range(4)]
    assert built(*steps).snapshot().staleness().tolist() == [1, 0.875, 0]
    assert built(*steps[:2]).snapshot().staleness() is None
    assert built(record(0), record(1), record(2)).snapshot().staleness() is None


def test_geometry_comes_back_from_the_file():
    trace = read_trace(trace_bytes(built().snapshot()))
    for name in ("position", "image", "frame", "level", "box"):
        np.testing.assert_array_equal(getattr(trace.geometry, name), getattr(geometry(), name))
    assert trace.geometry.size == ((20, 30),)
