"""Rows of a study by hand: defaults where a test does not care."""

from __future__ import annotations

from functools import lru_cache

from rcr_core.findings import Evidence, Interval, Row, Table, evidence_of
from rcr_core.findings.table import Cell
from rcr_core.settings import Settings

SHAPE = {
    "layers": 2,
    "kv_heads": 2,
    "query_groups": 3,
    "head_dim": 128,
    "prefix_length": 1024,
    "prompt_length": 1056,
}


def made(policy: str, sample: str | int, settings: dict | None = None, **numbers) -> Row:
    """A row of a policy at the default settings but for `settings`, with these numbers."""
    steps = numbers.pop("steps", 5)
    values = {
        "data": "pictures",
        "prompt": "Describe this image.",
        "model": "model",
        "dtype": "bfloat16",
        "weights": "c0ffee",
        "device": "cpu",
        "max_new_tokens": 64,
        "text": "a red ball",
        "tokens": list(range(steps)),
        "stop_reason": "eos",
        "shape": SHAPE,
        "seconds": 1.0,
        "versions": {"rcr": "1"},
    }
    return Row(policy=policy, sample=str(sample), settings=at(**(settings or {})), **{**values, **numbers})


def at(**changes) -> dict:
    """The default settings but for `changes`."""
    return dict(_settings(tuple(changes.items())))


@lru_cache
def _settings(changes: tuple) -> dict:
    return Settings(**dict(changes)).to_dict()


def column(policy: str, fidelities: list[float], settings: dict | None = None, **numbers) -> list[Row]:
    """A row per image, with its fidelity; other numbers are of all of them."""
    return [
        made(policy, sample, settings, fidelity=fidelity, **numbers)
        for sample, fidelity in enumerate(fidelities)
    ]


def evidence(*columns: list[Row]) -> Evidence:
    """The only evidence that these rows make."""
    (found,) = evidence_of(row for rows in columns for row in rows)
    return found


def row_of(table: Table, first: str) -> dict[str, Cell]:
    """The only row that begins so, by the ids of the columns."""
    (row,) = [row for row in table.rows if row[0] == first]
    return dict(zip([one.id for one in table.columns], row, strict=True))


def mean(cell: Cell) -> Cell:
    """The mean of a cell that may be an interval."""
    return cell.mean if isinstance(cell, Interval) else cell
