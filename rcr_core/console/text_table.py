"""A table of findings for a terminal."""

from __future__ import annotations

from math import isnan

from rcr_core.findings import Column, Interval, Table
from rcr_core.findings.table import Cell


def as_text(table: Table) -> str:
    """The heads, a rule, and a line per row; words at the left, numbers at the right, a dash for nothing."""
    heads = [column.head for column in table.columns]
    rows = [
        [cell_text(cell, column) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    widths = [max(map(len, cells)) for cells in zip(heads, *rows, strict=True)]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(_line(cells, widths, table.columns) for cells in lines)


def cell_text(cell: Cell, column: Column) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, Interval):
        ends = "" if isnan(cell.low) else f" [{_number(cell.low, column)}, {_number(cell.high, column)}]"
        return _number(cell.mean, column) + ends
    return cell if isinstance(cell, str) else _number(cell, column)


def _number(value: float, column: Column) -> str:
    if column.kind == "count":
        return f"{value:g}"
    if column.kind == "share":
        return f"{100 * value:.1f} %"
    return f"{value:.3f}" if column.kind == "score" else f"{value:.3g}"


def _line(cells: list[str], widths: list[int], columns: tuple[Column, ...]) -> str:
    placed = (
        cell.ljust(width) if column.kind == "text" else cell.rjust(width)
        for cell, width, column in zip(cells, widths, columns, strict=True)
    )
    return "  ".join(placed).rstrip()
