"""Builds a trace while the run goes on: append a record per step, take a snapshot at any time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np

from rcr_core.errors import TraceError
from rcr_core.trace import checks
from rcr_core.trace.geometry import VisualGeometry
from rcr_core.trace.images import join_images
from rcr_core.trace.meta import TraceMeta
from rcr_core.trace.records import StepRecord, Trace, check_values
from rcr_core.trace.schema import ARRAYS, DTYPES, MAX_TOP, PAIRS, ArraySpec, known_sizes

_NAMED_APART = {"tokens", "selected_row"}  # a record calls its token `token`, and has its selection in full
_STEP_ARRAYS = {
    name: spec for name, spec in ARRAYS.items() if spec.dims[0] == "N" and name not in _NAMED_APART
}
_SCALARS = {"logprob", "map_mean_scale"}
_FIRST_ROWS = 16
MAX_SELECTED_BYTES = 192 << 20  # so that with all else a trace stays within what a reader takes


class _Rows:
    """The rows of one array. The buffer doubles, so N rows cost O(N), and a view of them costs nothing.

    A row once put is never written again: a view stays right while rows are added behind it.
    """

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...]):
        self._buffer = np.empty((_FIRST_ROWS, *shape), dtype)

    def put(self, at: int, row) -> None:
        if at == len(self._buffer):
            grown = np.empty((2 * at, *self._buffer.shape[1:]), self._buffer.dtype)
            grown[:at] = self._buffer
            self._buffer = grown
        self._buffer[at] = row

    def view(self, count: int) -> np.ndarray:
        rows = self._buffer[:count]
        rows.flags.writeable = False
        return rows


class TraceBuilder:
    """Collects the step records of one run. One thread may append while others take snapshots.

    meta      what is known before decoding; its texts of tokens, stop reason and timings are replaced
    pictures  each processed image as a PNG file, or none

    Each distinct selection [H, S] is stored once, in the order of its first use. Raises `TraceError`.
    """

    def __init__(self, meta: TraceMeta, geometry: VisualGeometry, pictures: tuple[bytes, ...] = ()):
        if geometry.size != meta.image_size:
            raise TraceError(f"the geometry is of images {geometry.size}, the metadata of {meta.image_size}")
        self._meta = replace(meta, token_text=(), top_text=(), timings={"prefill": 0.0, "steps": []})
        self._geometry = geometry
        self._image, self._image_end = join_images(pictures)
        self._sizes = {**known_sizes(meta), "P": len(geometry.position), "Z": geometry.cells}
        self._lock = Lock()
        self._text: list[str | None] = []
        self._top_text: list[tuple[str, ...]] = []
        self._seconds: list[float] = []
        self._tokens = _Rows(DTYPES["I32"], ())
        self._selected_row = _Rows(DTYPES["I32"], (meta.layers,))
        index = DTYPES["U16" if meta.prefix_length <= 1 << 16 else "U32"]
        self._selected = _Rows(index, (meta.kv_heads, meta.select))
        self._row_of: dict[bytes, int] = {}
        self._rows: dict[str, _Rows] = {}  # per step array that this run has, known from the first record on
        self.snapshot()  # so that metadata and geometry that do not fit each other fail here

    def append(self, record: StepRecord) -> None:
        """Add the next step. A record that does not fit is a `TraceError`, and the trace stays as it was."""
        with self._lock:
            at = len(self._text)
            if record.step != at:
                raise TraceError(f"expected the record of step {at}, got that of step {record.step}")
            try:
                self._check_room()
                token, text, seconds, rows = self._checked(record)
            except TraceError as error:
                raise TraceError(f"step {at}: {error.message}", error.hint) from None
            if not self._rows:
                self._rows = {name: _Rows(row.dtype, row.shape) for name, row in rows.items()}
            for name, row in rows.items():
                self._rows[name].put(at, row)
            self._tokens.put(at, token)
            self._selected_row.put(at, self._store_selection(record))
            self._seconds.append(seconds)
            self._text.append(text)
            if record.top_text:
                self._top_text.append(tuple(record.top_text))

    def snapshot(self, stop_reason: str = "", timings: dict[str, Any] | None = None) -> Trace:
        """The trace up to the last appended step. `timings` adds to the recorded seconds, or replaces them.

        The arrays of the steps are read-only views, not copies, and do not change when the run goes on.
        """
        with self._lock:
            count = len(self._text)
            text, top_text = tuple(self._text), tuple(self._top_text)
            measured = {"prefill": sum(self._seconds[:1]), "steps": self._seconds[1:]}
            arrays = {name: rows.view(count) for name, rows in self._rows.items()} or self._no_steps()
            arrays["tokens"] = self._tokens.view(count)
            arrays["selected_row"] = self._selected_row.view(count)
            arrays["selected"] = self._selected.view(len(self._row_of))
        timings = {**measured, **(timings or {})}
        meta = replace(
            self._meta, token_text=text, top_text=top_text, stop_reason=stop_reason, timings=timings
        )
        return Trace(
            meta=meta,
            patch_box=self._geometry.box,
            patch_position=self._geometry.position,
            patch_image=self._geometry.image,
            patch_frame=self._geometry.frame,
            patch_level=self._geometry.level,
            patch_cell=self._geometry.cell,
            image=self._image,
            image_end=self._image_end,
            **arrays,
        )

    def _no_steps(self) -> dict[str, np.ndarray]:
        sizes = {**self._sizes, "N": 0, "K": MAX_TOP}
        required = {name: spec for name, spec in _STEP_ARRAYS.items() if not spec.optional}
        return {name: np.empty(_shape(spec, sizes), _dtype(name)) for name, spec in required.items()}

    def _checked(self, record: StepRecord) -> tuple[int, str | None, float, dict[str, np.ndarray]]:
        """The token, text, seconds and array rows of a record. Changes nothing."""
        token = checks.count(0, (1 << 31) - 1)("token", record.token)
        text = checks.texts_or_none("text", [record.text])[0]
        seconds = checks.seconds("seconds", record.seconds)
        rows = {}
        for name, spec in _STEP_ARRAYS.items():
            value = getattr(record, name)
            if value is not None or not spec.optional:
                rows[name] = np.asarray(value, _dtype(name)) if name in _SCALARS else value
        self._check_present(rows)
        # The first record decides how many top tokens there are.
        top = self._rows["top_ids"].view(0).shape[1] if self._rows else min(np.size(record.top_ids), MAX_TOP)
        for name, row in rows.items():
            _check_row(name, row, _dtype(name), _shape(_STEP_ARRAYS[name], {**self._sizes, "K": top})[1:])
            check_values(name, row, self._meta)
        self._check_top_text(record.top_text, top)
        _check_row("whole", record.whole, DTYPES["U8"], (self._sizes["L"],))
        _check_row("selected", record.selected, DTYPES["I32"], tuple(self._sizes[dim] for dim in "LHS"))
        check_values("selected", record.selected[record.whole == 0], self._meta)
        return token, text, seconds, rows

    def _check_room(self) -> None:
        """Every layer of the next step may have another selection."""
        of_one = self._selected.view(1).nbytes
        if (len(self._row_of) + self._sizes["L"]) * of_one > MAX_SELECTED_BYTES:
            raise TraceError(
                f"the selections of the run take {MAX_SELECTED_BYTES >> 20} MiB, more than a trace holds",
                "select fewer entries, or decode fewer tokens; what was recorded stays",
            )

    def _check_present(self, names: Collection[str]) -> None:
        for one, other in PAIRS:
            if (one in names) != (other in names):
                raise TraceError(f"{one} and {other} go together")
        if self._rows and (changed := sorted(set(names) ^ set(self._rows))):
            raise TraceError(f"{changed[0]} must be given at every step of a run, or at none")

    def _check_top_text(self, names: tuple[str, ...], top: int) -> None:
        checks.token_names("top_text", [names] if names else [])
        if names and len(names) != top:
            raise TraceError(f"top_text must name {top} tokens, as top_ids does, got {len(names)}")
        if self._text and bool(names) != bool(self._top_text):
            raise TraceError("top_text must be given at every step of a run, or at none")

    def _store_selection(self, record: StepRecord) -> np.ndarray:
        """The row of `selected` that each layer uses, i32 [L]; stores those that are new."""
        chosen = np.full(self._sizes["L"], -1, np.int32)
        for layer in np.flatnonzero(record.whole == 0):
            selection = record.selected[layer]
            key = blake2b(selection.tobytes(), digest_size=16).digest()  # the selection itself is larger
            if key not in self._row_of:
                self._selected.put(len(self._row_of), selection)
                self._row_of[key] = len(self._row_of)
            chosen[layer] = self._row_of[key]
        return chosen


def _dtype(name: str) -> np.dtype:
    return DTYPES[_STEP_ARRAYS[name].dtypes[0]]


def _check_row(name: str, row: Any, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    if not isinstance(row, np.ndarray) or row.dtype != dtype or row.shape != shape:
        got = f"{row.dtype.name} {list(row.shape)}" if isinstance(row, np.ndarray) else type(row).__name__
        raise TraceError(f"{name} must be {dtype.name} of shape {list(shape)}, got {got}")


def _shape(spec: ArraySpec, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else sizes[dim] for dim in spec.dims)
