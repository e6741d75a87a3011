"""Traces as files and bytes (`*.rcr`): written whole or not at all, checked before they cost memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from rcr_core.errors import TraceError
from rcr_core.trace.container import Header, pack, read_header, view
from rcr_core.trace.meta import TraceMeta
from rcr_core.trace.records import Trace

MAX_TRACE_BYTES = 512 << 20
_CHOOSE = "choose an .rcr file"


def trace_bytes(trace: Trace) -> bytes:
    """The trace as the bytes of a file. Equal traces give equal bytes."""
    return pack(trace.meta, trace.arrays())


def save_trace(trace: Trace, path: str | PathLike[str]) -> None:
    """Write a trace file. It appears under its name only when it is whole; a failure leaves nothing."""
    path = _path(path)
    data = trace_bytes(trace)
    with _system_errors(f"cannot save to {path}", "check the name, the permissions and the free space"):
        if not path.parent.is_dir():
            raise TraceError(f"cannot save to {path}: there is no folder {path.parent}", "create it first")
        beside = path.parent / f".{uuid4().hex}.part"
        try:
            with open(beside, "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(
                    stream.fileno()
                )  # else a crash soon after could leave an empty file under the new name
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)


def read_trace(source: str | PathLike[str] | bytes, max_bytes: int = MAX_TRACE_BYTES) -> Trace:
    """The trace in a file, or in the bytes of one; its arrays are read-only views of one buffer.

    Raises `TraceError` on a file that is missing, foreign, damaged, over `max_bytes`, or of another version.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        size = _capped(memoryview(source).nbytes, max_bytes)
        data = bytes(source)  # copies only what could change under the trace
        header = read_header(BytesIO(data), size)
        return _unpack(header, memoryview(data)[header.body_start :])
    with _opened(source, max_bytes) as (stream, size):
        header = read_header(stream, size)
        body = stream.read(size - header.body_start)
    if len(body) != size - header.body_start:
        raise TraceError(f"{source} changed while it was read", "try again")
    return _unpack(header, body)


def read_meta(path: str | PathLike[str], max_bytes: int = MAX_TRACE_BYTES) -> TraceMeta:
    """The metadata of a trace file. Reads and checks the header only."""
    with _opened(path, max_bytes) as (stream, size):
        return read_header(stream, size).meta


def _unpack(header: Header, body: bytes | memoryview) -> Trace:
    return Trace(meta=header.meta, **{name: view(entry, body) for name, entry in header.entries.items()})


@contextmanager
def _opened(path: str | PathLike[str], max_bytes: int) -> Iterator[tuple[BinaryIO, int]]:
    """A file as a stream and its size, which is within the cap."""
    path = _path(path)
    with _system_errors(f"cannot read {path}", "check the name and the permissions"):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise TraceError(f"{path} is a folder", _CHOOSE)
        if not stat.S_ISREG(mode):  # opening a pipe or a device could block
            raise TraceError(f"{path} is not a regular file", _CHOOSE)
        with open(path, "rb") as stream:
            yield stream, _capped(os.fstat(stream.fileno()).st_size, max_bytes)


def _capped(size: int, max_bytes: int) -> int:
    if size > max_bytes:
        raise TraceError(f"the trace has {size:,} bytes, the limit is {max_bytes:,}", "record fewer steps")
    return size


def _path(path: str | PathLike[str]) -> Path:
    """The path, if the system can take it at all; it answers a name that it cannot take with a ValueError."""
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise TraceError(f"{os.fspath(path)!r} cannot be a file's name", "check the name")
    return Path(path)


@contextmanager
def _system_errors(what: str, hint: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise TraceError(f"{what}: there is no such file", hint) from None
    except OSError as error:
        raise TraceError(f"{what}: {error.strerror or error}", hint) from error
