"""A trace file gives back what was written; every broken file is a TraceError that a person understands."""

import json
import os
import random
import resource
import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from rcr_core.errors import TraceError
from rcr_core.trace import PromptPiece, Trace, TraceMeta, read_meta, read_trace, save_trace, trace_bytes

PNG = bytes.fromhex(  # one grey pixel
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c63680000008200817775f2c40000000049454e44ae426082"
)
F32, I32, U8, U16 = np.float32, np.int32, np.uint8, np.uint16


def small_meta(**changes) -> TraceMeta:
    """Three tokens of a model with L=2, H=2, G=2; a prompt of T=8 with W=2, of which 4 tokens are visual."""
    values = {
        "model": "tiny",
        "family": "llava",
        "processor": "TinyProcessor",
        "prompt": "Describe.",
        "prompt_pieces": [PromptPiece("<image>", 0, 4, "image"), PromptPiece("Dé", 4, 1, "text")],
        "policy": "rcr",
        "settings": {"select": 2, "tau0": 0.03, "defer": False, "list": [1, 2.5, None]},
        "edits": [{"kind": "force", "step": 1, "layer": 0}],
        "image_size": [(30, 40)],
        "prompt_length": 8,
        "prefix_length": 6,
        "window": 2,
        "layers": 2,
        "kv_heads": 2,
        "query_groups": 2,
        "head_dim": 4,
        "select": 2,
        "managed": [False, True],
        "token_text": ["A", None, " 猫"],
        "stop_reason": "length",
        "dtype": "float32",
        "notes": ["a note"],
        "timings": {"prefill": 0.5, "steps": [0.25, 0.125], "load": 2},
        "versions": {"numpy": "2"},
    }
    return TraceMeta(**{**values, **changes})


def small_arrays() -> dict[str, np.ndarray]:
    return {
        "tokens": np.array([5, 6, 7], I32),
        "logprob": np.array([-0.1, -0.2, -0.3], F32),
        "top_ids": np.array([[5, 1, 2], [6, 1, 2], [7, 1, 2]], I32),
        "top_logprob": np.full((3, 3), -1.5, F32),
        "drift": np.array([[0, 0], [0, 0.25], [0, 0.5]], F32),
        "tau": np.array([[0, 0], [0, 0.03], [0, 0.04]], F32),
        "fire": np.array([[0, 0], [0, 1], [0, 0]], U8),
        "selected": np.array([[[0, 1], [2, 3]], [[5, 4], [2, 3]]], U16),
        "selected_row": np.array([[-1, 0], [-1, 1], [-1, 1]], I32),
        "mass": np.arange(24, dtype=F32).reshape(3, 2, 4) / 24,
        "map_mean": np.arange(12, dtype=U8).reshape(3, 4),
        "map_mean_scale": np.array([1, 2, 3], F32),
        "map_layer": np.arange(24, dtype=U8).reshape(3, 2, 4),
        "map_layer_scale": np.ones((3, 2), F32),
        "missed_layer": np.arange(24, 48, dtype=U8).reshape(3, 2, 4),
        "missed_layer_scale": np.full((3, 2), 0.5, F32),
        "patch_box": np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1], [np.nan] * 4, [0, 0, 1, 1]], F32),
        "patch_position": np.array([0, 1, 2, 3], I32),
        "patch_image": np.zeros(4, I32),
        "patch_frame": np.zeros(4, I32),
        "patch_level": np.array([1, 1, 1, 0], I32),
        "image": np.frombuffer(PNG, U8),
    }


DIAGNOSTICS = {
    "drift_exact": np.full((3, 2), 0.1, F32),
    "recall": np.full((3, 2), 0.9, F32),
    "map_full": np.arange(24, dtype=U8).reshape(3, 2, 4),
    "map_full_scale": np.ones((3, 2), F32),
    "top_position": np.arange(24, dtype=I32).reshape(3, 2, 4) % 6,
}


def small_trace(**changes) -> Trace:
    return Trace(**{"meta": small_meta(), **small_arrays(), **changes})


def assert_equal(left: Trace, right: Trace) -> None:
    assert left.meta == right.meta
    assert left.arrays().keys() == right.arrays().keys()
    for name, value in left.arrays().items():
        assert value.dtype == right.arrays()[name].dtype
        np.testing.assert_array_equal(value, right.arrays()[name], err_msg=name)


def split(data: bytes) -> tuple[dict, bytes]:
    """Header and body of a safetensors file, by hand."""
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join(header: dict | bytes, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def with_meta(**changes) -> bytes:
    """A file whose metadata is changed behind the writer's back; None removes a field."""
    header, body = split(trace_bytes(small_trace()))
    meta = {**json.loads(header["__metadata__"]["meta"]), **changes}
    header["__metadata__"]["meta"] = json.dumps(
        {key: value for key, value in meta.items() if value is not None}
    )
    return join(header, body)


def with_entry(name: str, **changes) -> bytes:
    header, body = split(trace_bytes(small_trace()))
    header[name].update(changes)
    return join(header, body)


def with_value(name: str, at: int, packed: bytes) -> bytes:
    """A file with some bytes of one array overwritten."""
    header, body = split(trace_bytes(small_trace(**DIAGNOSTICS)))
    begin = header[name]["data_offsets"][0] + at
    return join(header, body[:begin] + packed + body[begin + len(packed) :])


# Round trip


@pytest.mark.parametrize("extra", [{}, DIAGNOSTICS], ids=["plain", "diagnostics"])
def test_bytes_and_file_round_trip(tmp_path, extra):
    trace = small_trace(**extra)
    assert_equal(read_trace(trace_bytes(trace)), trace)
    save_trace(trace, tmp_path / "run.rcr")
    assert_equal(read_trace(tmp_path / "run.rcr"), trace)
    assert_equal(read_trace(str(tmp_path / "run.rcr")), trace)
    assert read_meta(tmp_path / "run.rcr") == trace.meta
    assert os.listdir(tmp_path) == ["run.rcr"]


def test_no_steps_and_no_image_round_trip():
    empty = {name: value[:0] for name, value in small_arrays().items()}
    meta = small_meta(token_text=[], image_size=[], timings={"prefill": 0, "steps": []})
    maps = {name: empty[name][..., :0] for name in ("map_mean", "map_layer", "missed_layer")}
    trace = Trace(meta=meta, **{**empty, **maps})
    assert_equal(read_trace(trace_bytes(trace)), trace)


def test_library_reads_what_we_write(tmp_path):
    """The file is plain safetensors: another reader sees the same arrays and the two metadata keys."""
    save_trace(small_trace(), tmp_path / "run.rcr")
    with safe_open(tmp_path / "run.rcr", framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is not a dict)
        metadata = file.metadata()
    assert metadata.keys() == {"format", "meta"} and metadata["format"] == "rcr-trace"
    assert json.loads(metadata["meta"])["token_text"] == ["A", None, " 猫"]
    assert arrays.keys() == small_arrays().keys()
    for name, value in small_arrays().items():
        np.testing.assert_array_equal(arrays[name], value, err_msg=name)
        assert arrays[name].dtype == value.dtype


def test_we_read_what_the_library_writes():
    data = save(small_arrays(), {"format": "rcr-trace", "meta": small_meta().to_json()})
    assert_equal(read_trace(data), small_trace())


def test_same_trace_gives_the_same_bytes():
    """The library shuffles its metadata on every call; twenty equal files are no accident."""
    assert len({trace_bytes(small_trace()) for _ in range(20)}) == 1
    header, _ = split(trace_bytes(small_trace()))
    assert list(header) == sorted(header) and list(header["__metadata__"]) == ["format", "meta"]


def test_arrays_are_aligned_and_read_only():
    data = trace_bytes(small_trace())
    assert struct.unpack("<Q", data[:8])[0] % 8 == 0
    assert not read_trace(bytearray(data)).drift.flags.writeable


def test_only_timings_differ_between_two_equal_runs():
    slow = small_trace(meta=small_meta(timings={"prefill": 9, "steps": [9, 9]}))
    calm = replace(slow, meta=replace(slow.meta, timings=small_meta().timings))
    assert trace_bytes(slow) != trace_bytes(small_trace()) == trace_bytes(calm)


# Bad files


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
    "no version": (with_meta(schema=None), "lacks the field 'schema'"),
    "version a number": (with_meta(schema=1.0), "schema must be a version"),
    "fewer layers": (with_meta(layers=1, managed=[True]), "must have shape"),
    "other token count": (with_meta(token_text=["A", "B"], timings={"prefill": 0, "steps": []}), "N=2"),
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
FLOATS = [n for n, v in {**small_arrays(), **DIAGNOSTICS}.items() if v.dtype == F32 and n != "patch_box"]
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


def test_saving_into_a_missing_folder(tmp_path):
    with pytest.raises(TraceError, match="no folder"):
        save_trace(small_trace(), tmp_path / "nowhere" / "run.rcr")
    assert os.listdir(tmp_path) == []


def test_saving_over_a_folder_leaves_nothing(tmp_path):
    (tmp_path / "run.rcr").mkdir()
    with pytest.raises(TraceError, match="cannot save"):
        save_trace(small_trace(), tmp_path / "run.rcr")
    assert os.listdir(tmp_path) == ["run.rcr"]


def test_a_full_disk_leaves_the_old_file(tmp_path):
    """The limit on file sizes stands for the full disk: the write fails half way."""
    path = tmp_path / "run.rcr"
    save_trace(small_trace(), path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(TraceError, match="cannot save"):
            save_trace(small_trace(**DIAGNOSTICS), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == GOOD
    assert os.listdir(tmp_path) == ["run.rcr"]


def test_saving_replaces_the_old_file(tmp_path):
    path = tmp_path / "run.rcr"
    path.write_bytes(b"old")
    save_trace(small_trace(), path)
    assert path.read_bytes() == GOOD
