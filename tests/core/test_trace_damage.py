"""Every broken trace file is a TraceError that a person understands, and costs no memory."""

import json
import os
import random
import struct
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save

from rcr_core.errors import TraceError
from rcr_core.trace import read_meta, read_trace, trace_bytes
from rcr_core.trace.images import check_images
from tests.core.trace_samples import (
    DIAGNOSTICS,
    F32,
    HEADS,
    PICTURES,
    PNG,
    join,
    several,
    small_arrays,
    small_meta,
    small_trace,
    split,
    with_entry,
    with_meta,
    with_value,
)

FOREIGN = save({"weight": np.ones((2, 2), F32)}, {"format": "pt"})
GOOD = trace_bytes(small_trace())
HEADER, BODY = split(GOOD)
BAD_BYTES = {
    "empty": (b"", "empty"),
    "five bytes": (b"hello", "not a trace"),
    "text": (b"The quick brown fox jumps over the lazy dog", "not a trace"),
    "png": (PNG, "not a trace"),
    "random": (random.Random(0).randbytes(5000), "not a trace"),
    "header beyond the file": (struct.pack("<Q", 1000) + b"{}", "ends within its header"),
    "header over 16 MiB": (struct.pack("<Q", (16 << 20) + 1) + bytes((16 << 20) + 100), "not a trace"),
    "header of no length": (struct.pack("<Q", 0), "not valid JSON"),
    "header not JSON": (join(b"{'a': 1}", b""), "not valid JSON"),
    "header not UTF-8": (join(b"\xff\xfe{}", b""), "not a trace"),
    "header a list": (join(b"[]", b""), "not a trace"),
    "header too deep": (join(b"[" * 200_000, b""), "not valid JSON"),
    "number too long": (join(b'{"a": ' + b"9" * 10_000 + b"}", b""), "not valid JSON"),
    "foreign safetensors": (FOREIGN, "not a trace"),
    "no metadata": (join({k: v for k, v in HEADER.items() if k != "__metadata__"}, BODY), "not a trace"),
    "metadata a list": (join({**HEADER, "__metadata__": []}, BODY), "not a trace"),
    "format without meta": (join({**HEADER, "__metadata__": {"format": "rcr-trace"}}, BODY), "no metadata"),
    "other format": (join({**HEADER, "__metadata__": {"format": "x", "meta": "{}"}}, BODY), "not a trace"),
    "meta not JSON": (
        join({**HEADER, "__metadata__": {"format": "rcr-trace", "meta": "{"}}, BODY),
        "valid JSON",
    ),
    "meta a list": (
        join({**HEADER, "__metadata__": {"format": "rcr-trace", "meta": "[]"}}, BODY),
        "JSON object",
    ),
    "unknown array": (join({**HEADER, "extra": HEADER["tokens"]}, BODY), "unknown array 'extra'"),
    "missing array": (join({k: v for k, v in HEADER.items() if k != "tau"}, BODY), "'tau' is missing"),
    "entry a list": (join({**HEADER, "tau": []}, BODY), "entry of 'tau'"),
    "entry lacks a key": (join({**HEADER, "tau": {"dtype": "F32", "shape": [3, 2]}}, BODY), "entry of 'tau'"),
    "wrong dtype": (with_entry("tau", dtype="F64"), "tau must have dtype F32"),
    "dtype a number": (with_entry("tau", dtype=3), "entry of 'tau'"),
    "wrong rank": (with_entry("tau", shape=[6]), "tau must have shape"),
    "wrong shape": (with_entry("tau", shape=[2, 3]), r"tau must have shape \[N=3, L=2\]"),
    "shape true": (with_entry("tau", shape=[3, True]), "entry of 'tau'"),
    "shape negative": (with_entry("tau", shape=[-3, -2]), "entry of 'tau'"),
    "shape a float": (with_entry("tau", shape=[3.0, 2]), "entry of 'tau'"),
    "shape enormous": (with_entry("image", shape=[1 << 60]), "entry of 'image'"),
    "shape of 2**40": (with_entry("image", shape=[1 << 40]), "image does not lie"),
    "patches differ": (with_entry("map_mean", shape=[3, 5]), "map_mean must have shape"),
    "too many top tokens": (with_entry("top_ids", shape=[3, 6]), "top_logprob must have shape"),
    "one offset": (with_entry("tau", data_offsets=[0]), "entry of 'tau'"),
    "gap": (with_entry("tau", data_offsets=[1 << 20, (1 << 20) + 24]), "does not lie"),
    "overlap": (with_entry("tau", data_offsets=HEADER["drift"]["data_offsets"]), "does not lie"),
    "reversed": (with_entry("tau", data_offsets=HEADER["tau"]["data_offsets"][::-1]), "does not lie"),
    "trailing bytes": (GOOD + b"x", "1 bytes follow"),
    "one byte short": (GOOD[:-1], "cut short"),
    "newer major version": (with_meta(schema="2.0", future=1), "version 2.0 is not known"),
    "field of 1.0 missing": (with_meta(schema="1.0", scene=None, top_text=None, policy=None), "'policy'"),
    "head map without scale": (
        trace_bytes(small_trace(**HEADS)).replace(b"map_head_scale", b"map_head_scalf"),
        "unknown array 'map_head_scalf'",
    ),
    "no version": (with_meta(schema=None), "lacks the field 'schema'"),
    "version a number": (with_meta(schema=1.0), "schema must be a version"),
    "fewer layers": (with_meta(layers=1, managed=[True]), "must have shape"),
    "other token count": (
        with_meta(token_text=["A", "B"], top_text=[], timings={"prefill": 0, "steps": []}),
        "N=2",
    ),
    "select enormous": (with_meta(select=1 << 30), "selected must have shape"),
}


@pytest.mark.parametrize(("data", "message"), BAD_BYTES.values(), ids=BAD_BYTES.keys())
def test_bad_bytes(data, message, tmp_path):
    with pytest.raises(TraceError, match=message):
        read_trace(data)
    (tmp_path / "bad.rcr").write_bytes(data)
    with pytest.raises(TraceError, match=message):
        read_trace(tmp_path / "bad.rcr")


NAN, INF = struct.pack("<f", np.nan), struct.pack("<f", np.inf)
FLOATS = [
    n for n, v in {**small_arrays(), **DIAGNOSTICS, **HEADS}.items() if v.dtype == F32 and n != "patch_box"
]
BAD_VALUES = {
    **{f"{name} NaN": (name, 0, NAN, f"{name} holds NaN") for name in FLOATS},
    "drift inf": ("drift", 20, INF, "drift holds NaN or infinity"),
    "box inf": ("patch_box", 0, INF, "box rows"),
    "box half NaN": ("patch_box", 0, NAN, "box rows must be numbers, or NaN throughout"),
    "box outside": ("patch_box", 12, struct.pack("<f", 1.5), "box rows"),
    "box turned": ("patch_box", 0, struct.pack("<f", 0.75), "box rows"),
    "fire 2": ("fire", 1, b"\x02", r"fire must be in \[0, 1\]"),
    "selected beyond the prefix": ("selected", 0, struct.pack("<H", 6), r"selected must be in \[0, 5\]"),
    "row beyond the selections": ("selected_row", 0, struct.pack("<i", 2), "selected_row"),
    "row -2": ("selected_row", 0, struct.pack("<i", -2), "selected_row must be -1 or more"),
    "token negative": ("tokens", 0, struct.pack("<i", -1), "tokens must be 0 or more"),
    "scale negative": ("map_mean_scale", 0, struct.pack("<f", -1), "map_mean_scale must be 0 or more"),
    "argmax beyond the prefix": ("top_position", 0, struct.pack("<i", 6), "top_position"),
    "patch beyond the prompt": ("patch_position", 0, struct.pack("<i", 8), "patch_position"),
    "patch twice": ("patch_position", 0, struct.pack("<i", 1), "position must hold different"),
    "patch of no image": ("patch_image", 0, struct.pack("<i", 1), "image must hold indices"),
    "frame negative": ("patch_frame", 0, struct.pack("<i", -1), "frame must be 0 or more"),
    "level 2": ("patch_level", 0, struct.pack("<i", 2), "level must be 0"),
    "image not PNG": ("image", 0, b"<svg>", "image must be a PNG"),
}


@pytest.mark.parametrize(("name", "at", "packed", "message"), BAD_VALUES.values(), ids=BAD_VALUES.keys())
def test_bad_values(name, at, packed, message):
    with pytest.raises(TraceError, match=message):
        read_trace(with_value(name, at, packed))


ENDS = np.cumsum([len(picture) for picture in PICTURES]).tolist()
BAD_PICTURES = {
    "ends too early": (PICTURES, [*ENDS[:2], ENDS[2] - 1], "image_end must rise"),
    "ends too late": (PICTURES, [*ENDS[:2], ENDS[2] + 1], "image_end must rise"),
    "ends turned": (PICTURES, [ENDS[1], ENDS[0], ENDS[2]], "image_end must rise"),
    "an empty picture": (PICTURES, [ENDS[0], ENDS[0], ENDS[2]], "image_end must rise"),
    "begins below 0": (PICTURES, [-1, *ENDS[1:]], "image_end must rise"),
    "cut within a picture": (PICTURES, [ENDS[0] + 1, *ENDS[1:]], "image must be a PNG file for every"),
    "second no PNG": ((PNG, b"GIF89a" * 9, PNG), None, "image must be a PNG file for every"),
    "two ends of three": (PICTURES[:2], None, r"image_end must have shape \[I=3\]"),
    "no end": (PICTURES, [], r"image_end must have shape \[I=3\]"),
}


@pytest.mark.parametrize(("pictures", "ends", "message"), BAD_PICTURES.values(), ids=BAD_PICTURES.keys())
def test_bad_pictures(pictures, ends, message):
    with pytest.raises(TraceError, match=message):
        several(pictures, ends)


def test_a_damaged_end_in_a_file_is_found():
    header, body = split(trace_bytes(several()))
    begin = header["image_end"]["data_offsets"][0]
    damaged = body[:begin] + struct.pack("<i", ENDS[0] - 3) + body[begin + 4 :]
    with pytest.raises(TraceError, match="image must be a PNG file for every image"):
        read_trace(join(header, damaged))


def test_there_is_an_end_to_pictures():
    with pytest.raises(TraceError, match="at most 256 entries, got 257"):
        check_images(np.frombuffer(PNG * 257, np.uint8), np.arange(1, 258, dtype=np.int32) * len(PNG))


@pytest.mark.parametrize("name", json.loads(small_meta().to_json()))
def test_a_missing_or_wrong_metadata_field_is_named(name):
    with pytest.raises(TraceError, match=f"lacks the field '{name}'"):
        read_trace(with_meta(**{name: None}))
    for value in (["\ud800"], -(10**30), 0.5):
        with pytest.raises(TraceError, match=name):
            read_trace(with_meta(**{name: value}))


BAD_META = {
    "unknown field": ({"colour": 1}, "unknown field 'colour'"),
    "prompt over 1 MB": ({"prompt": "x" * (1 << 20) + "x"}, "prompt is longer"),
    "caption over 1 MB": ({"token_text": ["é" * (1 << 18)] * 3}, "token_text is longer"),
    "settings over 1 MB": ({"settings": {"a": "x" * (1 << 20)}}, "settings is longer"),
    "settings infinite": ({"settings": {"tau0": float("inf")}}, "settings.tau0 must be finite"),
    "settings too deep": ({"settings": {"a": [[[[[[[[[1]]]]]]]]]}}, "levels deep"),
    "scene no mapping": ({"scene": [9001, 5, 4]}, "scene must be a mapping"),
    "scene without its count": ({"scene": {"seed": 1, "grid": 5}}, "scene must hold seed, grid, count"),
    "scene with more": ({"scene": {"seed": 1, "grid": 5, "count": 4, "url": 0}}, "scene must hold"),
    "scene of a fraction": ({"scene": {"seed": 1.5, "grid": 5, "count": 4}}, "scene.seed must be a whole"),
    "scene seed too large": ({"scene": {"seed": 1 << 53, "grid": 5, "count": 4}}, "scene.seed must be"),
    "names of one step": ({"top_text": [["a", "b", "c"]]}, "top_text must be empty or have one entry per"),
    "names ragged": ({"top_text": [["a", "b"], ["a"], ["a", "b"]]}, "equally many names"),
    "names of two tokens": ({"top_text": [["a", "b"]] * 3}, "top_text must name 3 tokens a step"),
    "name a number": ({"top_text": [["a", "b", 3]] * 3}, r"top_text\[0\] must be text"),
    "name too long": ({"top_text": [["a", "b", "x" * 33]] * 3}, "names of at most 32 characters"),
    "seconds negative": ({"timings": {"prefill": -1, "steps": []}}, "timings.prefill"),
    "seconds missing": ({"timings": {"prefill": 1}}, "timings must hold"),
    "seconds too many": ({"timings": {"prefill": 1, "steps": [1, 1, 1]}}, "timings.steps"),
    "version not text": ({"versions": {"numpy": 2}}, "versions.numpy must be text"),
    "stop reason": ({"stop_reason": "bored"}, "stop_reason must be one of"),
    "size of three": ({"image_size": [[1, 2, 3]]}, "image_size must hold"),
    "managed of three": ({"managed": [True] * 3}, "managed must have 2 entries"),
    "prefix too long": ({"prefix_length": 7}, "prefix_length must be"),
    "piece incomplete": ({"prompt_pieces": [{"text": "a"}]}, "prompt_pieces must hold"),
    "piece kind": ({"prompt_pieces": [{"text": "", "start": 0, "count": 1, "kind": "audio"}]}, "pieces.kind"),
    "piece beyond": ({"prompt_pieces": [{"text": "", "start": 7, "count": 2, "kind": "text"}]}, "end within"),
    "pieces overlap": (
        {"prompt_pieces": [{"text": "", "start": 0, "count": 1, "kind": "text"}] * 2},
        "overlap",
    ),
    "dtype no text": ({"dtype": -1}, "dtype must be"),
    "surrogate in notes": ({"notes": ["\ud800"]}, "notes holds broken Unicode"),
}


@pytest.mark.parametrize(("changes", "message"), BAD_META.values(), ids=BAD_META.keys())
def test_bad_metadata(changes, message):
    with pytest.raises(TraceError, match=message):
        read_trace(with_meta(**changes))


def test_truncation_anywhere(tmp_path):
    path = tmp_path / "cut.rcr"
    for size in [*range(0, len(GOOD), 23), len(GOOD) - 1]:
        path.write_bytes(GOOD[:size])
        with pytest.raises(TraceError):
            read_trace(path)
        with pytest.raises(TraceError):
            read_meta(path)


def test_flipped_header_bytes_never_surprise():
    """A damaged header is refused, or describes a trace of the same shape (another letter, say)."""
    shapes = {name: value.shape for name, value in small_arrays().items()}
    rng = random.Random(1)
    end = len(GOOD) - len(BODY)
    refused = 0
    for _ in range(1000):
        data = bytearray(GOOD)
        for _ in range(rng.choice((1, 1, 1, 3))):
            data[rng.randrange(end)] ^= 1 << rng.randrange(8)
        try:
            trace = read_trace(data)
        except TraceError:
            refused += 1
        else:
            assert {name: value.shape for name, value in trace.arrays().items()} == shapes
    assert refused > 500


@pytest.mark.parametrize("make", ["missing", "folder", "pipe", "null", "surrogate"])
def test_bad_paths(tmp_path, make):
    path = tmp_path / {"null": "a\0b", "surrogate": "\ud800"}.get(make, "run.rcr")
    if make == "folder":
        path.mkdir()
    if make == "pipe":
        os.mkfifo(path)
    expected = {"missing": "no such file", "folder": "is a folder", "pipe": "not a regular file"}
    for read in (read_trace, read_meta):
        with pytest.raises(TraceError, match=expected.get(make, "cannot be a file's name")) as caught:
            read(path)
        assert caught.value.hint


def test_size_cap():
    read_trace(GOOD, max_bytes=len(GOOD))
    with pytest.raises(TraceError, match="the limit is"):
        read_trace(GOOD, max_bytes=len(GOOD) - 1)


def test_an_enormous_file_costs_no_memory(tmp_path):
    """A sparse terabyte is refused by its size, and a long body by its header, before either is read."""
    huge = tmp_path / "huge.rcr"
    huge.write_bytes(GOOD)
    tracemalloc.start()
    try:
        for size in (1 << 40, 500 << 20):
            os.truncate(huge, size)
            with pytest.raises(TraceError, match="the limit is|follow the last array"):
                read_trace(huge)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_read_meta_does_not_read_the_arrays(tmp_path):
    path = tmp_path / "run.rcr"
    path.write_bytes(with_value("drift", 0, NAN))
    assert read_meta(path) == small_meta()
    with pytest.raises(TraceError):
        read_trace(path)


# Saving
