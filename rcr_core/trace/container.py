"""The container of a trace file: a safetensors file whose header is checked before any array is looked at.

    8 bytes   length of the header, little endian
    header    JSON: "__metadata__" {"format": "rcr-trace", "meta": "..."}, and an entry per array
    body      the arrays, one after the other without gaps

Reading goes through here rather than through the library, which checks neither size nor names, and copies
every array: here an array is a read-only view of the body.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np
from safetensors.numpy import save

from rcr_core.errors import TraceError
from rcr_core.trace.checks import parse_json
from rcr_core.trace.meta import TraceMeta
from rcr_core.trace.schema import DTYPES, check_layout

FORMAT = "rcr-trace"
MAX_HEADER_BYTES = 8 << 20
_ALIGN = 8  # so that a reader may lay typed arrays over the body
_MAX_SIZE = 1 << 53  # what any JSON reader can hold exactly
_FOREIGN = "this is not a trace file"
_CHOOSE = "choose an .rcr file"
_CUT = "the file is cut short or damaged"


@dataclass(frozen=True)
class Entry:
    """One array of the header: its bytes are [begin, end) of the body."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """A checked header. The arrays fit the metadata and fill the body without gaps."""

    meta: TraceMeta
    entries: dict[str, Entry]
    body_start: int


def pack(meta: TraceMeta, arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a trace file: the same metadata and arrays give the same bytes."""
    packed = save(
        {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)},
        metadata={"format": FORMAT, "meta": meta.to_json()},
    )
    # The library writes its metadata in the order of a hash map, another one on every call: sort it.
    start = 8 + struct.unpack_from("<Q", packed)[0]
    entries = json.loads(packed[8:start])
    header = json.dumps(entries, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _ALIGN)
    if len(header) > MAX_HEADER_BYTES:
        raise TraceError(f"the metadata has over {MAX_HEADER_BYTES >> 20} MiB", "shorten the edits or notes")
    return b"".join((struct.pack("<Q", len(header)), header, memoryview(packed)[start:]))


def read_header(stream: BinaryIO, size: int) -> Header:
    """Read and check the header of a file of `size` bytes; the stream is left at the body."""
    if size == 0:
        raise TraceError("the file is empty", _CHOOSE)
    prefix = stream.read(8)
    if len(prefix) < 8:
        raise TraceError(_FOREIGN, _CUT)
    length = struct.unpack("<Q", prefix)[0]
    if length > MAX_HEADER_BYTES:
        raise TraceError(_FOREIGN, _CHOOSE)
    if 8 + length > size:
        raise TraceError("the file ends within its header", f"{_CUT}, or it is not a trace")
    header = _parse(stream.read(length))
    meta = _read_metadata(header.pop("__metadata__", None))
    entries = {name: _entry(name, value) for name, value in header.items()}
    check_layout(meta, {name: (entry.dtype, entry.shape) for name, entry in entries.items()})
    _check_offsets(entries, size - 8 - length)
    return Header(meta, entries, 8 + length)


def view(entry: Entry, body: bytes | memoryview) -> np.ndarray:
    """The array of an entry, as a view of the body."""
    dtype = DTYPES[entry.dtype]
    return np.frombuffer(body, dtype, prod(entry.shape), entry.begin).reshape(entry.shape)


def _parse(header: bytes) -> dict[str, Any]:
    try:
        values = parse_json("the header", header.decode())
    except UnicodeDecodeError:
        raise TraceError(_FOREIGN, _CHOOSE) from None
    if not isinstance(values, dict):
        raise TraceError(_FOREIGN, _CHOOSE)
    return values


def _read_metadata(metadata: Any) -> TraceMeta:
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise TraceError("this safetensors file is not a trace", f"it may hold model weights; {_CHOOSE}")
    if not isinstance(metadata.get("meta"), str):
        raise TraceError("the trace has no metadata", _CUT)
    return TraceMeta.from_json(metadata["meta"])


def _entry(name: str, value: Any) -> Entry:
    wrong = TraceError(f"the header entry of {name[:60]!r} is wrong", _CUT)
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise wrong
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not (isinstance(dtype, str) and _are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2):
        raise wrong
    return Entry(dtype, tuple(shape), *offsets)


def _are_sizes(values: Any) -> bool:
    if not isinstance(values, list) or len(values) > 4:
        return False
    # By type, because True is an int to isinstance.
    return all(type(value) is int and 0 <= value <= _MAX_SIZE for value in values)


def _check_offsets(entries: Mapping[str, Entry], body_size: int) -> None:
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != end or entry.end - entry.begin != prod(entry.shape) * DTYPES[entry.dtype].itemsize:
            raise TraceError(f"the array {name} does not lie where the header says", _CUT)
        end = entry.end
    if end > body_size:
        missing = f"{end - body_size:,} of {end:,} bytes are missing"
        raise TraceError(f"the file is cut short, {missing}", "copy it again")
    if end < body_size:
        raise TraceError(f"{body_size - end:,} bytes follow the last array", "the file is damaged")
