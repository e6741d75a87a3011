"""What the rows of one policy at one setting come to: means, shares, intervals; None where none has them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rcr_core.cost import Cost, cost
from rcr_core.findings.evidence import in_common
from rcr_core.findings.kinds import FREE
from rcr_core.findings.row import Row
from rcr_core.findings.statistics import Interval, difference, interval
from rcr_core.findings.table import Cell
from rcr_core.settings import Settings

Rows = Mapping[str, Row]  # of one policy at one setting, by sample

_SAME = 1 - 1e-9


def real(value: float) -> float | None:
    """A number, or None where it is not one."""
    return float(value) if math.isfinite(value) else None


def cell(found: Interval) -> Cell:
    """An interval as a cell: the mean alone where there are no ends, None where there is nothing."""
    return found if math.isfinite(found.low) else real(found.mean)


def numbers(rows: Rows, name: str) -> np.ndarray:
    """A number of each row that has it: float64 [n]."""
    found = (getattr(row, name) for row in rows.values())
    return np.array([value for value in found if value is not None], np.float64)


def having(rows: Rows, *names: str) -> dict[str, Row]:
    """The rows that have all of these numbers."""
    return {
        sample: row for sample, row in rows.items() if all(getattr(row, name) is not None for name in names)
    }


def mean(rows: Rows, name: str) -> float | None:
    values = numbers(rows, name)
    return float(values.mean()) if len(values) else None


def median(rows: Rows, name: str) -> float | None:
    values = numbers(rows, name)
    return float(np.median(values)) if len(values) else None


def after_selection(rows: Rows) -> float | None:
    """Tokens that are chosen after the selection at prefill, mean: all but the first."""
    steps = mean(rows, "steps")
    return None if steps is None else steps - 1


def average(rows: Rows, name: str, seed: int = 0) -> Cell:
    """The mean of a number with its interval."""
    return cell(interval(numbers(rows, name), seed))


def gain(rows: Rows, others: Rows, name: str = "fidelity", seed: int = 0) -> Cell:
    """How much larger a number is than under another policy: mean with its interval, paired by image."""
    ours, theirs = having(rows, name), having(others, name)
    samples = in_common(ours, theirs)
    pairs = ([getattr(side[sample], name) for sample in samples] for side in (ours, theirs))
    return cell(difference(*pairs, seed=seed))


def excess(rows: Rows, name: str, other: str, seed: int = 0) -> Cell:
    """How much larger a number is than another one of the same run, with its interval, paired."""
    both = having(rows, name, other)
    return cell(difference(numbers(both, name), numbers(both, other), seed))


def objects_right(rows: Rows) -> float | None:
    """Of all objects of the bundled scenes, the share with all attributes right."""
    graded = having(rows, "objects", "objects_right").values()
    total = sum(row.objects for row in graded)
    return sum(row.objects_right for row in graded) / total if total else None


def same_words(rows: Rows) -> float | None:
    """Share of images whose words are those of the uncompressed run, in their order."""
    compared = having(rows, "fidelity").values()
    same = sum(row.diverges_at == -1 or row.fidelity >= _SAME for row in compared)
    return same / len(compared) if compared else None


def priced(rows: Rows) -> dict[str, Row]:
    """The rows whose reads are known: those that decided something, or whose policy never reads."""
    return {sample: row for sample, row in rows.items() if row.refresh_rate is not None or row.policy in FREE}


def costs(rows: Rows, rate: float | None = None) -> list[Cost]:
    """The cost by formula of each row, at a given refresh rate or at its realised one.

    A row that decided nothing has no realised rate, and no cost unless its policy never reads.
    Raises `SettingsError` on a policy without a formula.
    """
    if not rows:
        return []
    settings = Settings.from_dict(next(iter(rows.values())).settings)
    found = []
    for row in (priced(rows) if rate is None else rows).values():
        realised = (row.refresh_rate or 0.0) if rate is None else rate
        found.append(cost(row.policy, settings, row.shape["prefix_length"], row.shape["head_dim"], realised))
    return found


def mean_cost(rows: Rows, part: str, rate: float | None = None) -> float | None:
    """The mean over rows of a part of their cost: resident, detector, rescored or reads."""
    found = costs(rows, rate)
    return float(np.mean([getattr(one, part) for one in found])) if found else None
