"""The sections of a bench in words: tables for a terminal, or in Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rcr_core.bench import Column, Figures, Section

_SHOWN: dict[str, Callable[[Any], str]] = {
    "text": lambda value: {True: "yes", False: "NO"}[value] if isinstance(value, bool) else str(value),
    "ms": lambda value: f"{1e3 * value:.2f}",
    "us": lambda value: f"{1e6 * value:,.1f}",
    "bytes": lambda value: f"{value / 2**20:,.2f}",
    "bandwidth": lambda value: f"{value / 1e9:.2f}",
    "ratio": lambda value: f"{value:.2f}",
    "number": lambda value: f"{value:,.1f}",
}


def as_lines(machine: dict[str, object], sections: list[Section]) -> list[str]:
    """For a terminal: columns of equal width."""
    lines = [_words(machine)]
    for section in sections:
        lines += ["", f"{section.name} ({section.seconds:.0f} s)"]
        for figures in filter(lambda one: one.rows, section.figures):
            cells = _cells(figures)
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines += ["", figures.title]
            lines += [_line(row, widths, figures.columns) for row in cells]
            lines += [f"  {figures.note}"] if figures.note else []
        lines += _lacks(section)
    return lines


def as_markdown(machine: dict[str, object], sections: list[Section]) -> list[str]:
    """For a README."""
    lines = [_words(machine)]
    for section in sections:
        lines += ["", f"## {section.name.capitalize()}"]
        for figures in filter(lambda one: one.rows, section.figures):
            head, *rows = _cells(figures)
            rule = ["---" if column.unit == "text" else "---:" for column in figures.columns]
            lines += ["", f"**{figures.title}**", ""]
            lines += [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
            lines += ["", figures.note] if figures.note else []
        lines += ["", *(f"* {line.strip()}" for line in _lacks(section))]
    return lines


def _words(machine: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def _lacks(section: Section) -> list[str]:
    left_out = [f"  left out: {what}" for what in section.left_out]
    return [*left_out, *(f"  failed: {what}" for what in section.failed)]


def _cells(figures: Figures) -> list[list[str]]:
    """The heads and all rows, as words."""
    rows = [[_cell(row.get(column.id), column) for column in figures.columns] for row in figures.rows]
    return [[column.head for column in figures.columns], *rows]


def _cell(value: Any, column: Column) -> str:
    return "-" if value is None else _SHOWN[column.unit](value)


def _line(cells: list[str], widths: list[int], columns: tuple[Column, ...]) -> str:
    """Words at the left, numbers at the right."""
    placed = (
        cell.ljust(width) if column.unit == "text" else cell.rjust(width)
        for cell, width, column in zip(cells, widths, columns, strict=True)
    )
    return "  " + "  ".join(placed).rstrip()
