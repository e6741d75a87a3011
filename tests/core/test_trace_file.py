"""A trace file gives back what was written, and appears whole or not at all."""

import io
import json
import os
import resource
import struct
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import save

from rcr_core.errors import TraceError
from rcr_core.trace import Trace, read_meta, read_trace, save_trace, trace_bytes
from tests.core.trace_samples import (
    DIAGNOSTICS,
    HEADS,
    PICTURES,
    PNG,
    assert_equal,
    join,
    several,
    small_arrays,
    small_meta,
    small_trace,
    split,
    with_meta,
)


@pytest.mark.parametrize("extra", [{}, DIAGNOSTICS, HEADS], ids=["plain", "diagnostics", "heads"])
def test_bytes_and_file_round_trip(tmp_path, extra):
    trace = small_trace(**extra)
    assert_equal(read_trace(trace_bytes(trace)), trace)
    save_trace(trace, tmp_path / "run.rcr")
    assert_equal(read_trace(tmp_path / "run.rcr"), trace)
    assert_equal(read_trace(str(tmp_path / "run.rcr")), trace)
    assert read_meta(tmp_path / "run.rcr") == trace.meta
    assert os.listdir(tmp_path) == ["run.rcr"]


def test_three_pictures_of_different_sizes_round_trip(tmp_path):
    trace = several()
    save_trace(trace, tmp_path / "run.rcr")
    again = read_trace(tmp_path / "run.rcr")
    assert_equal(again, trace)
    assert [picture.tobytes() for picture in again.pictures] == list(PICTURES)
    opened = [Image.open(io.BytesIO(picture)).size for picture in again.pictures]
    assert opened == [(3, 2), (40, 30), (1, 1)]
    assert again.geometry.image.tolist() == [0, 1, 1, 2]


def test_one_picture_is_stored_as_ever():
    assert "image_end" not in split(trace_bytes(small_trace()))[0]
    assert [picture.tobytes() for picture in small_trace().pictures] == [PNG]
    assert small_trace(image=np.empty(0, np.uint8)).pictures == ()


def test_a_file_of_version_1_1_may_hold_the_first_of_several_pictures():
    header, body = split(trace_bytes(small_trace(meta=small_meta(image_size=[(30, 40), (5, 5)], scene=None))))
    meta = {**json.loads(header["__metadata__"]["meta"]), "schema": "1.1"}
    header["__metadata__"]["meta"] = json.dumps(meta)
    trace = read_trace(join(header, body))
    assert (trace.meta.schema, len(trace.meta.image_size), len(trace.pictures)) == ("1.2", 2, 1)


def test_a_file_of_version_1_0_is_read(tmp_path):
    """It knows neither scenes nor names of tokens; saved again it is a file of this version."""
    old = with_meta(schema="1.0", scene=None, top_text=None)
    assert not {"scene", "top_text"} & json.loads(split(old)[0]["__metadata__"]["meta"]).keys()
    trace = read_trace(old)
    assert (trace.meta.schema, trace.meta.scene, trace.meta.top_text) == ("1.2", None, ())
    assert_equal(trace, small_trace(meta=small_meta(scene=None, top_text=[])))
    save_trace(trace, tmp_path / "new.rcr")
    assert_equal(read_trace(tmp_path / "new.rcr"), trace)


def test_no_steps_and_no_image_round_trip():
    empty = {name: value[:0] for name, value in small_arrays().items()}
    meta = small_meta(token_text=[], top_text=[], image_size=[], timings={"prefill": 0, "steps": []})
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
    assert path.read_bytes() == trace_bytes(small_trace())
    assert os.listdir(tmp_path) == ["run.rcr"]


def test_saving_replaces_the_old_file(tmp_path):
    path = tmp_path / "run.rcr"
    path.write_bytes(b"old")
    save_trace(small_trace(), path)
    assert path.read_bytes() == trace_bytes(small_trace())
