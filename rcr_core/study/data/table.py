"""The rows of a person's own table, wherever it is stored.

Columns: `image`, a path relative to the table's file (or, where the file can hold them, the bytes); and, each
of them optional, `prompt`, `references` and `answers` (a text or a list of texts), `id`, `max_new_tokens`.
Other columns are left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rcr_core.errors import StudyError
from rcr_core.study.data.pictures import picture_in_cell, picture_in_file, printable
from rcr_core.study.data.sample import DEFAULT_PROMPT, DEFAULT_TOKENS, Sample, Source, numbered

OPTIONAL = ("prompt", "references", "answers", "id", "max_new_tokens")


@dataclass(frozen=True)
class TableRow:
    """One row: `place` says where it stands ("line 3"); `cell` gives its image where that is not a path."""

    place: str
    values: Mapping[str, Any]
    cell: Callable[[], Any] | None = None


def table_source(path: Path, rows: Sequence[TableRow]) -> Source:
    """The samples of a table. Raises `StudyError` on a cell of the wrong kind, and on an id given twice.

    A row without an id is named after its image, or else its place in the table.
    """
    name = printable(path)
    if not rows:
        raise StudyError(f"{name} has no rows", "write one row a sample, with the column image")
    checked = [_Checked(name, row) for row in rows]
    ids = _ids(name, checked)

    def make(index: int) -> Sample:
        row, own = checked[index], ids[index]
        read = (
            partial(picture_in_file, path.parent / row.image, own)
            if row.cell is None
            else partial(_from_cell, row.cell, own)
        )
        return Sample(own, row.prompt, read, row.max_new_tokens, row.references, row.answers)

    return Source(printable(Path(path.stem)), len(rows), make)


def _from_cell(cell: Callable[[], Any], sample: str) -> bytes:
    return picture_in_cell(cell(), sample)


def _ids(name: str, rows: Sequence[_Checked]) -> list[str]:
    given = Counter(row.id for row in rows if row.id is not None)
    if twice := [own for own, count in given.items() if count > 1]:
        places = [row.place for row in rows if row.id == twice[0]]
        raise StudyError(
            f"{name} gives the id {twice[0]!r} in {places[0]} and in {places[1]}", "make the ids unique"
        )
    others = iter(numbered((row.default_id for row in rows if row.id is None), taken=given))
    return [next(others) if row.id is None else row.id for row in rows]


class _Checked:
    """The cells of a row, each of its kind."""

    def __init__(self, name: str, row: TableRow):
        self.place, self.cell = row.place, row.cell
        self._name, self._values = name, row.values
        self.image = "" if row.cell else self._text("image")
        if self.image is None:
            raise StudyError(f"{row.place} of {name} has no image", "every row needs the path of its image")
        prompt = self._text("prompt")
        self.prompt = DEFAULT_PROMPT if prompt is None else prompt
        self.references = self._texts("references")
        self.answers = self._texts("answers")
        self.id = self._id()
        self.default_id = self.image or row.place
        self.max_new_tokens = self._count("max_new_tokens")

    def _text(self, column: str) -> str | None:
        value = self._values.get(column)
        return None if value is None else self._checked_text(column, value)

    def _texts(self, column: str) -> tuple[str, ...]:
        value = self._values.get(column)
        if value is None:
            return ()
        values = value if isinstance(value, list) else [value]
        return tuple(self._checked_text(column, one) for one in values)

    def _id(self) -> str | None:
        value = self._values.get("id")
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self._text("id")

    def _count(self, column: str) -> int:
        value = self._values.get(column)
        if value is None:
            return DEFAULT_TOKENS
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._wrong(column, value, "a whole number of at least 1")
        return value

    def _checked_text(self, column: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(column, value, "a text")
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write and no file can hold
            raise self._wrong(column, value, "a text of whole characters") from None
        return value

    def _wrong(self, column: str, value: Any, wanted: str) -> StudyError:
        return StudyError(
            f"{self.place} of {self._name}: {column} must be {wanted}, got {ascii(value)[:60]}",
            "correct the row",
        )
