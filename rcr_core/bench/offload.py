"""Offloading: gathers from host memory, reads by count, and what a decode step then takes."""

from __future__ import annotations

from dataclasses import replace

from rcr_core.bench.bandwidth import gathers
from rcr_core.bench.contestants import GENERATE, Enters, Entrant
from rcr_core.bench.contests import Contest
from rcr_core.bench.reads import READERS, all_reads
from rcr_core.bench.section import Attempts, Column, Figures
from rcr_core.bench.speed import Pace, turns
from rcr_core.settings import Settings

WAYS = ("none", "masked", "conditional")


def offloading(contest: Contest, attempts: Attempts, settings: Settings, pace: Pace) -> list[Figures]:
    """Three tables: gathers, reads, and step times by where the prefix lies."""
    figures = [gathers(contest, attempts, settings), all_reads(contest, attempts, settings)]
    return [*figures, _steps(contest, attempts, settings, pace)]


def _steps(contest: Contest, attempts: Attempts, settings: Settings, pace: Pace) -> Figures:
    """Step times by where the prefix lies; `generate` is the measure of all."""
    everyone: dict[str, Enters] = {GENERATE: Entrant(GENERATE)}
    for name in ("bacon", *READERS):
        for offload in WAYS:
            everyone[f"{name} {offload}"] = Entrant(name, replace(settings, offload=offload))
    seconds = turns(contest, everyone, attempts, pace, "steps", attempts.seconds)
    return _step_figures(contest, seconds)


def _step_figures(contest: Contest, seconds: dict[str, float]) -> Figures:
    base = seconds.get(GENERATE)
    columns = [Column("policy", "policy", "text")]
    for way in WAYS:
        columns += [Column(f"{way} seconds", f"{way}, ms", "ms"), Column(f"{way} ratio", "ratio", "ratio")]
    rows = [{"policy": GENERATE, "none seconds": base, "none ratio": 1.0}] if base else []
    for name in ("bacon", *READERS):
        row: dict[str, object] = {"policy": name}
        for way in WAYS:
            if (found := seconds.get(f"{name} {way}")) is not None:
                row[f"{way} seconds"] = found
                row |= {f"{way} ratio": found / base} if base else {}
        if len(row) > 1:
            rows.append(row)
    note = "Medians of decode steps, as ratios to plain generate, by where the prefix lies."
    return Figures("offloaded steps", f"Steps: {contest.title}", tuple(columns), rows, note)
