"""A table of findings: plain cells with typed columns, for the page, the report, CSV and LaTeX alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from rcr_core.findings.statistics import Interval

Cell = str | float | int | Interval | None
# text: as it stands; count: a whole number; share: in [0, 1], shown in per cent; score: in [0, 1], shown with
# three digits; number: any other, three significant digits.
Kind = Literal["text", "count", "share", "score", "number"]


@dataclass(frozen=True)
class Column:
    """A column. `head` is what people read (with its unit), `help` what it says."""

    id: str
    head: str
    kind: Kind
    help: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells, one per column; None where a row has no such value. `note` says how to read it.

    A cell may be an `Interval` in any column that is not text. The difference of two scores is a score, in
    [-1, 1].
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.id}: a row has {len(row)} cells, not {len(self.columns)}")

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells of a column, by its id."""
        at = [column.id for column in self.columns].index(name)
        return tuple(row[at] for row in self.rows)

    def trimmed(self) -> Table:
        """Without the columns that no row has a value in."""
        at = [place for place in range(len(self.columns)) if any(row[place] is not None for row in self.rows)]
        return replace(
            self,
            columns=tuple(self.columns[place] for place in at),
            rows=tuple(tuple(row[place] for place in at) for row in self.rows),
        )
