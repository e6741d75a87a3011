"""Tables of findings as HTML: numbers right-aligned, ends of intervals quieter, the best of a column bold."""

from __future__ import annotations

import math
import re
from html import escape

from rcr_core.findings import Column, Interval, Table
from rcr_core.findings.table import Cell
from viz.study.looks import look_of
from viz.study.names import POLICY, TITLES, head_of, title_of
from viz.study.numbers import ends, kept, shown

# What is better where it is higher; of other columns no value is the best one.
_HIGHER = re.compile(r"(\w+_)?(fidelity|same_words|accuracy)(_\w+)?|objects_\w+|recall|rouge|cider")
_SHORT = 14  # characters of a text that stays on a line
_MANY = 8  # columns; of more of them the ends of intervals stand below the means
_LONG = 24  # rows; a longer table opens on demand
_NAMES = {title: name for name, title in TITLES.items()}


def table_html(table: Table) -> str:
    """A table with its note below; its title is left to where it stands."""
    heads = "".join(_head(column) for column in table.columns)
    best = [_best(table, at) for at in range(len(table.columns))]
    body = "".join(_row(table, row, best) for row in table.rows)
    note = f'<p class="note">{kept(table.note)}</p>' if table.note else ""
    dense = ' class="dense"' if len(table.columns) > _MANY else ""
    whole = (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}">'
        f"<table{dense}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    if len(table.rows) > _LONG:
        whole = f"<details><summary>All {len(table.rows)} rows of the table</summary>{whole}</details>"
    return f'<div class="table">{whole}{note}</div>'


def _head(column: Column) -> str:
    kind = "text" if column.kind == "text" else "num"
    told = f' title="{escape(column.help)}"' if column.help else ""
    return f'<th scope="col" class="{kind}"{told}>{escape(head_of(column))}</th>'


def _row(table: Table, row: tuple[Cell, ...], best: list[float | None]) -> str:
    policy = _policy_of(table, row)
    loud = ' class="loud"' if policy and look_of(policy).loud else ""
    cells = (
        _cell(cell, column, top, policy) for cell, column, top in zip(row, table.columns, best, strict=True)
    )
    return f"<tr{loud}>{''.join(cells)}</tr>"


def _cell(cell: Cell, column: Column, best: float | None, policy: str) -> str:
    if column.id == POLICY and policy:
        colour = look_of(policy).colour
        return f'<td class="text policy" style="--policy: {colour}">{escape(title_of(policy))}</td>'
    if column.kind == "text" and not isinstance(cell, Interval):
        text = shown(cell, column.kind)
        return f'<td class="text{" short" if len(text) <= _SHORT else ""}">{escape(text)}</td>'
    mean = _mean(cell)
    if mean is None:
        return f'<td class="num none">{shown(None, column.kind)}</td>'
    top = " best" if best is not None and mean == best else ""
    bracket = ends(cell, column.kind) if isinstance(cell, Interval) else ""
    bracket = f' <span class="ends">{bracket}</span>' if bracket else ""
    return f'<td class="num{top}"><span class="mean">{shown(mean, column.kind)}</span>{bracket}</td>'


def _best(table: Table, at: int) -> float | None:
    """The highest of several values of a column; the uncompressed run, which all is held against, is none."""
    if not _HIGHER.fullmatch(table.columns[at].id):
        return None
    values = [_mean(row[at]) for row in table.rows if _policy_of(table, row) != "full"]
    there = [value for value in values if value is not None]
    return max(there) if len(set(there)) > 1 else None


def _mean(cell: Cell) -> float | None:
    value = cell.mean if isinstance(cell, Interval) else cell
    if value is None or isinstance(value, str) or math.isnan(value):
        return None
    return value


def _policy_of(table: Table, row: tuple[Cell, ...]) -> str:
    """The policy that a row is about, by name or title; empty where it is about none that is known."""
    for cell, column in zip(row, table.columns, strict=True):
        if column.id == POLICY and isinstance(cell, str):
            name = _NAMES.get(cell, cell)
            return name if name in TITLES else ""
    return ""
