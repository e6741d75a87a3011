"""Fidelity against reads: what each policy gives for what it fetches, at every setting that was run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rcr_core.findings.evidence import ENOUGH, Evidence, in_common
from rcr_core.findings.kinds import ORACLE, REFERENCE
from rcr_core.findings.measures import Rows, cell, having, mean_cost, numbers, priced
from rcr_core.findings.statistics import Interval, interval
from rcr_core.findings.table import Column, Table

_KNOBS = ("select", "tau0", "rho")  # what buys fidelity with reads
_OWN = {"rcr": "rho", "threshold": "tau0"}

_COLUMNS = (
    Column("policy", "policy", "text"),
    Column("setting", "setting", "text"),
    Column("images", "images", "count"),
    Column("reads", "reads", "number", "vectors per KV head and layer-step, by formula at the realised rate"),
    Column("fidelity", "fidelity", "score", "ROUGE-L F1 against the uncompressed run"),
    Column("frontier", "frontier", "text", "yes where nothing else is as near for no more reads"),
)


@dataclass(frozen=True)
class Point:
    """A policy at a setting.

    label: the settings that differ from the base, or the policy's own knob where none does.
    settings: those that differ. reads: vectors per KV head and layer-step at the realised rate.
    fidelity: with NaN ends where there is one image only. common: whether the images are enough, and those
    of all points.
    """

    policy: str
    label: str
    settings: dict[str, Any]
    reads: float
    fidelity: Interval
    images: int
    common: bool


def points(evidence: Evidence, seed: int = 0) -> list[Point]:
    """Every policy at every budget, threshold and rate that it was run at.

    On the images that all points have in common if they are at least 10, else each on its own. Without the
    uncompressed cache: it reads nothing because it evicts nothing.
    """
    found = [
        (policy, _changes(evidence, settings), priced(having(rows, "fidelity")))
        for policy in evidence.all_policies
        if policy != REFERENCE
        for settings, rows in sorted(evidence.settings_of(policy), key=_by_knobs)
    ]
    found = [(policy, changes, rows) for policy, changes, rows in found if changes is not None and rows]
    common = in_common(*(rows for _, _, rows in found)) if found else []
    enough = len(common) >= ENOUGH
    if enough:
        found = [(*which, {sample: rows[sample] for sample in common}) for *which, rows in found]
    return [_point(evidence, policy, changes, rows, enough, seed) for policy, changes, rows in found]


def frontier(found: list[Point]) -> list[Point]:
    """The points that no other equals or beats for fewer reads, or beats for as many; by reads.

    Points that tie in both are all kept. None where the points are not on common images. The oracle stands
    aside: what it costs to read the answer first is no read.
    """
    rivals = [point for point in found if point.policy != ORACLE]
    if not all(point.common for point in rivals):
        return []
    kept: list[Point] = []
    for point in sorted(rivals, key=_worth):
        if not kept or point.fidelity.mean > kept[-1].fidelity.mean or _worth(point) == _worth(kept[-1]):
            kept.append(point)
    return kept


def _worth(point: Point) -> tuple[float, float]:
    return point.reads, -point.fidelity.mean


def pareto_table(evidence: Evidence, seed: int = 0) -> Table | None:
    """A row per point; None with fewer than two."""
    found = points(evidence, seed)
    if len(found) < 2:
        return None
    ahead = frontier(found)
    rows = tuple(
        (
            point.policy,
            point.label,
            point.images,
            point.reads,
            cell(point.fidelity),
            _on_frontier(point, ahead),
        )
        for point in found
    )
    note = (
        f"Where {ENOUGH} images or more are common to all points they are compared on those, else each on "
        "its own, and no frontier is told. It goes by the means alone: points on it and off it may differ "
        f"by less than their intervals. Other settings: {evidence.base_text}. Reads are an upper bound. The "
        "oracle is not on the frontier, because it has read the uncompressed answer before it starts."
    )
    return Table("pareto", "Fidelity against reads", _COLUMNS, rows, note).trimmed()


def _on_frontier(point: Point, ahead: list[Point]) -> str | None:
    if point.policy == ORACLE or not ahead:
        return None
    return "yes" if point in ahead else "no"


def _changes(evidence: Evidence, settings: dict[str, Any]) -> dict[str, Any] | None:
    """The settings that differ from the base, or None where others do than those that buy fidelity."""
    if settings.keys() != evidence.base.keys():
        return None
    changes = {name: value for name, value in settings.items() if value != evidence.base[name]}
    return changes if changes.keys() <= set(_KNOBS) else None


def _by_knobs(one: tuple[dict[str, Any], Rows]) -> list[float]:
    return [one[0].get(name, 0) for name in _KNOBS]


def _point(
    evidence: Evidence, policy: str, changes: dict[str, Any], rows: Rows, common: bool, seed: int
) -> Point:
    named = changes or {name: evidence.base[name] for name in (_OWN.get(policy, "select"),)}
    return Point(
        policy=policy,
        label=", ".join(f"{name} {named[name]:g}" for name in _KNOBS if name in named),
        settings=changes,
        reads=mean_cost(rows, "reads"),
        fidelity=interval(numbers(rows, "fidelity"), seed),
        images=len(rows),
        common=common,
    )
