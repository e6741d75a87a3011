"""Parquet files: a person's own table in one file, or the shards of a public set.

Pictures are read one after the other from where they lie: a page of the file at a time is in memory, however
large its row groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from rcr_core.errors import StudyError
from rcr_core.study.data.pictures import printable
from rcr_core.study.data.sample import Source
from rcr_core.study.data.table import OPTIONAL, TableRow, table_source

BATCH = 16  # rows that are decoded at once
RECENT = 64  # pictures that are kept, as several policies read one


def parquet_source(path: Path) -> Source:
    """A person's own table. Raises `StudyError`, also where the column `image` is missing."""
    rows = ParquetRows([path])
    rows.require(["image"], printable(path))
    columns = [name for name in OPTIONAL if name in rows.columns]
    kind = rows.kind("image")
    if kind not in ("text", "bytes"):
        raise StudyError(
            f"{printable(path)} has an image column of {kind}", "it should hold paths, or the files' bytes"
        )
    by_path = kind == "text"
    values = rows.values([*columns, "image"] if by_path else columns)
    cells = [None if by_path else partial(rows.cell, "image", index) for index in range(len(rows))]
    return table_source(
        path,
        [TableRow(f"row {index + 1}", values[index], cells[index]) for index in range(len(rows))],
    )


class ParquetRows:
    """The rows of one or more parquet files, as if they were one. Raises `StudyError` on a broken file."""

    def __init__(self, paths: Sequence[Path]):
        self._pyarrow, reader = _packages()
        self._errors = (self._pyarrow.ArrowException, OSError)
        self._names = [printable(path) for path in paths]
        self._files = []
        for path, name in zip(paths, self._names, strict=True):
            try:
                self._files.append(reader.ParquetFile(path, memory_map=True))
            except self._errors as error:
                raise _unreadable(name, error) from None
        self._starts = _starts(file.metadata.num_rows for file in self._files)
        self._columns: dict[tuple[int, str], _Column] = {}
        self.cell = lru_cache(RECENT)(self._cell)  # cell(column, index): one value

    @property
    def columns(self) -> list[str]:
        """Those that every file has."""
        first, *rest = ([field.name for field in file.schema_arrow] for file in self._files)
        return [name for name in first if all(name in other for other in rest)]

    def __len__(self) -> int:
        return self._starts[-1]

    def require(self, columns: Iterable[str], name: str) -> None:
        """Raises `StudyError` where one of the columns is missing."""
        for column in columns:
            if column not in self.columns:
                raise StudyError(
                    f"{name} has no column {column}", f"its columns are {', '.join(self.columns) or 'none'}"
                )

    def kind(self, column: str) -> str:
        """What a column holds: "text", "bytes" (also as the hub stores images), or the name of its type."""
        types = self._pyarrow.types
        kind = self._files[0].schema_arrow.field(column).type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return "text"
        if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
            kind = kind.field("bytes").type
        if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
            return "bytes"
        return str(kind)

    def values(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """The cells of small columns, row by row."""
        found: list[dict[str, Any]] = []
        for file, name in zip(self._files, self._names, strict=True):
            try:
                part = file.read(columns=list(columns)).to_pylist()
            except (*self._errors, UnicodeDecodeError) as error:
                raise _unreadable(name, error) from None
            found += part or [{} for _ in range(file.metadata.num_rows)]  # without any column there are none
        return found

    def _cell(self, column: str, index: int) -> Any:
        number = bisect_right(self._starts, index) - 1
        key = (number, column)
        if key not in self._columns:
            self._columns[key] = _Column(self._files[number], column)
        try:
            return self._columns[key].value(index - self._starts[number])
        except (*self._errors, StopIteration) as error:
            raise _unreadable(self._names[number], error) from None


class _Column:
    """One column of a file, read forwards within a row group; a step back begins the group again."""

    def __init__(self, file: Any, column: str):
        self._file, self._column = file, column
        metadata = file.metadata
        self._starts = _starts(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        self._group = -1
        self._at = 0  # row of the first value of the batch
        self._batch: Any = ()
        self._batches: Any = iter(())

    def value(self, index: int) -> Any:
        group = bisect_right(self._starts, index) - 1
        if group != self._group or index < self._at:
            self._group, self._at, self._batch = group, self._starts[group], ()
            self._batches = self._file.iter_batches(BATCH, row_groups=[group], columns=[self._column])
        while index >= self._at + len(self._batch):
            self._at += len(self._batch)
            self._batch = next(self._batches).column(0)
        return self._batch[index - self._at].as_py()


def _starts(counts: Iterable[int]) -> list[int]:
    """Where each part begins, and at last where they all end."""
    return list(accumulate(counts, initial=0))


def _packages() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415 - optional
        from pyarrow import parquet  # noqa: PLC0415 - optional
    except ImportError:
        raise StudyError("parquet files need the package pyarrow", "pip install pyarrow") from None
    return pyarrow, parquet


def _unreadable(name: str, error: Exception) -> StudyError:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    return StudyError(f"{name} cannot be read as a parquet file: {reason}", "write or download it again")
