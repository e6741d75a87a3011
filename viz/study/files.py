"""Tables of a study as CSV and as LaTeX.

CSV: comma separated with a heading row; an interval becomes three columns, its mean and both ends; numbers
are written so that they read back as they stand, and no text can be taken for a formula (see `viz.tables`).
LaTeX: a `table` with booktabs rules, caption and label; an interval as `.742 [.701, .783]`.
"""

from __future__ import annotations

import csv
import io
import math

import pandas as pd

from rcr_core.findings import Column, Interval, Table
from rcr_core.findings.table import Cell
from viz.study.names import POLICY, head_of, title_of
from viz.study.numbers import MINUS, NONE, shown
from viz.tables import plain

_ENDS = ("low", "high")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    MINUS: "$-$",
    NONE: "--",
    "\N{INFINITY}": r"$\infty$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
}


def table_csv(table: Table) -> str:
    """A table as CSV."""
    spans = [_has_intervals(table, at) for at in range(len(table.columns))]
    names: list[str] = []
    for column, wide in zip(table.columns, spans, strict=True):
        names += [column.id, *(f"{column.id}_{end}" for end in _ENDS)] if wide else [column.id]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(plain(name) for name in names)
    for row in table.rows:
        writer.writerow(value for cell, wide in zip(row, spans, strict=True) for value in _values(cell, wide))
    return out.getvalue()


def table_latex(table: Table, label: str = "") -> str:
    """A table as a LaTeX `table` environment, labelled `tab:` and its id; it needs the package booktabs."""
    heads = [escaped(head_of(column)) for column in table.columns]
    rows = [
        [_set(_text(cell, column)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    caption = f"{table.title}. {table.note}" if table.note else table.title
    # pandas numbers the columns, so that two of one name stay two; everything is escaped already.
    text = pd.DataFrame(rows, columns=range(len(heads)), dtype=object).to_latex(
        index=False,
        header=heads,
        escape=False,
        caption=(escaped(caption), escaped(table.title)),
        label=f"tab:{label or table.id}",
        position="t",
        column_format="".join(_alignment(column) for column in table.columns),
    )
    return text.replace("\\begin{tabular}", "\\centering\n\\begin{tabular}", 1)


def escaped(text: str) -> str:
    """Text as LaTeX sets it, whatever signs it holds."""
    signs = (_LATEX.get(sign, " " if sign in "\r\n\t" else sign) for sign in text)
    return "".join(signs).replace(r" \%", r"~\%")


def _text(cell: Cell, column: Column) -> str:
    if column.id == POLICY and isinstance(cell, str):
        return title_of(cell)
    return shown(cell, column.kind)


def _set(text: str) -> str:
    """A cell. After the end of a row LaTeX takes a bracket for a distance."""
    return f"{{[}}{escaped(text[1:])}" if text.startswith("[") else escaped(text)


def _has_intervals(table: Table, at: int) -> bool:
    return any(isinstance(row[at], Interval) for row in table.rows)


def _values(cell: Cell, wide: bool) -> list[object]:
    """What a cell comes to in CSV; a column with intervals takes three."""
    if isinstance(cell, Interval):
        return [_plain(cell.mean), _plain(cell.low), _plain(cell.high)]
    return [_plain(cell), "", ""] if wide else [_plain(cell)]


def _plain(cell: str | float | int | None) -> object:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return plain(cell) if isinstance(cell, str) else str(cell)


def _alignment(column: Column) -> str:
    return "l" if column.kind == "text" else "r"
