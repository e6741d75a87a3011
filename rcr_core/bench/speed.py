"""How long a decode step takes under every policy, at several lengths of the prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rcr_core.bench.contestants import GENERATE, Enters, Entrant, Times, prefill_seconds, step_times
from rcr_core.bench.contests import Contest, Contests
from rcr_core.bench.section import Attempts, Column, Figures
from rcr_core.policies import POLICIES
from rcr_core.settings import Settings

BUNDLED = "bundled"
NAMES = (GENERATE, *(name for name in POLICIES if name != "oracle"))
# From this prefix on, contestants that are prefilled together are fewer: a CPU prefills for half a minute.
LONG = 16 << 10
LONG_NAMES = (GENERATE, "full", "bacon", "exact", "rcr", "rcr, traced")
PREFILLS = "4k"  # the contest whose prefill is timed
MOST_PREFILLS = 4
# (contest, numerator, denominator, target ratio), for the small random model on two CPU cores
TARGETS = (
    ("bundled", "rcr, traced", "generate", 1.25),
    ("4k", "rcr, traced", "generate", 0.85),
    ("16k", "rcr, traced", "generate", 0.4),
    ("4k", "bacon", "generate", 0.7),
    ("4k", "snapkv", "generate", 0.7),
    ("bundled", "rcr, traced", "rcr", 1.10),
    ("4k", "prefill with BACON and sketch", "plain prefill", 1.08),
)


@dataclass(frozen=True)
class Pace:
    """rounds: turns of every contestant; steps: decode steps a turn.

    together: whether contestants are interleaved, as a machine with other work needs it, or come one after
    another, so that one alone holds memory.
    """

    rounds: int
    steps: int
    together: bool


def contest_name(prefix: int) -> str:
    return f"{prefix // 1024}k" if prefix % 1024 == 0 else str(prefix)


def speed(
    contests: Contests, attempts: Attempts, settings: Settings, prefixes: dict[str, int | None], pace: Pace
) -> list[Figures]:
    """Step times and their ratios to plain `generate`. prefixes: by contest, None for the bundled one."""
    found: dict[str, dict[str, float]] = {}
    before, spent = None, 0.0
    for name, prefix in prefixes.items():
        growth = prefix / before if prefix and before else 1.0
        contest = attempts.run(
            f"model and prompt ({name})",
            lambda prefix=prefix: contests.bundled if prefix is None else contests.random(prefix),
        )
        if contest is None:
            continue
        everyone = entrants(settings)
        if pace.together and (prefix or 0) >= LONG:
            everyone = {one: everyone[one] for one in LONG_NAMES}
        found[name] = turns(contest, everyone, attempts, pace, name, spent * growth)
        if found[name]:
            before, spent = prefix, attempts.seconds
        if name == PREFILLS:
            found[name] |= _prefills(contest, attempts, pace)
    return [_step_figures(found, contests.build.title), _ratio_figures(found, contests.device.type == "cpu")]


def entrants(settings: Settings) -> dict[str, Entrant]:
    """`generate`, every policy, and RCR recorded."""
    everyone = [Entrant(name, settings) for name in NAMES]
    everyone.append(Entrant("rcr", settings, traced=True))
    return {entrant.name: entrant for entrant in everyone}


def _prefills(contest: Contest, attempts: Attempts, pace: Pace) -> dict[str, float]:
    rounds = min(pace.rounds, MOST_PREFILLS)
    return attempts.run(f"{PREFILLS}: prefill", lambda: prefill_seconds(contest, rounds)) or {}


def turns(
    contest: Contest,
    everyone: dict[str, Enters],
    attempts: Attempts,
    pace: Pace,
    title: str,
    expected: float,
) -> dict[str, float]:
    """Median seconds of a decode step, by name; those that there was no time or memory for are missing."""
    groups = [everyone] if pace.together else [{name: one} for name, one in everyone.items()]
    seconds: dict[str, float] = {}
    for group in groups:
        what = f"{title}: {'all contestants' if pace.together else next(iter(group))}"
        times: Times | None = attempts.run(
            what,
            lambda group=group: step_times(
                contest, group, pace.rounds, pace.steps, lambda: attempts.budget.left < 0
            ),
            expected,
        )
        if times is None:
            continue
        expected = attempts.seconds
        seconds |= times.seconds
        if times.rounds < pace.rounds:
            attempts.left_out.append(f"{what}: {times.rounds} of {pace.rounds} rounds only")
    return seconds


def _step_figures(found: dict[str, dict[str, float]], title: str) -> Figures:
    columns = [Column("contestant", "", "text")]
    for name in found:
        columns += [Column(f"{name} seconds", f"{name}, ms", "ms"), Column(f"{name} ratio", "ratio", "ratio")]
    rows: list[dict[str, Any]] = []
    for contestant in dict.fromkeys(one for seconds in found.values() for one in seconds):
        row: dict[str, Any] = {"contestant": contestant}
        for name, seconds in found.items():
            base = "plain prefill" if "prefill" in contestant else GENERATE
            if contestant in seconds:
                row[f"{name} seconds"] = seconds[contestant]
                if base in seconds:
                    row[f"{name} ratio"] = seconds[contestant] / seconds[base]
        rows.append(row)
    note = f"Medians of decode steps, as ratios to plain generate. Bundled: the captioner; else a {title}."
    return Figures("steps", "Step time", tuple(columns), rows, note)


def _ratio_figures(found: dict[str, dict[str, float]], targeted: bool) -> Figures:
    """The ratios that were aimed at; the aims are those for the small model, on a CPU."""
    rows = []
    for name, top, bottom, target in TARGETS:
        seconds = found.get(name, {})
        if top in seconds and bottom in seconds:
            row = {"contest": name, "what": f"{top} / {bottom}", "ratio": seconds[top] / seconds[bottom]}
            rows.append(row | ({"target": target} if targeted else {}))
    columns = (
        Column("contest", "contest", "text"),
        Column("what", "ratio of medians", "text"),
        Column("ratio", "found", "ratio"),
        Column("target", "at most", "ratio"),
    )
    return Figures("ratios", "Ratios of medians", columns, rows)
