"""The whole bench: which sections there are, what each does on a device, and how they share the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
import transformers

from rcr_core.bench.checks import checks
from rcr_core.bench.contests import SEVEN_B, SMALL, Build, Contest, Contests
from rcr_core.bench.graph import graphs
from rcr_core.bench.memory import memories
from rcr_core.bench.offload import offloading
from rcr_core.bench.section import Attempts, Budget, Figures, Say, Section, free
from rcr_core.bench.speed import BUNDLED, Pace, contest_name, speed
from rcr_core.settings import Settings

# How much of the time that is left a section may take, relative to those after it.
SHARES = {"checks": 3.0, "speed": 8.0, "memory": 2.0, "offload": 2.5, "graph": 1.0}
SECTIONS = tuple(SHARES)
CONTESTS = (BUNDLED, "1k", "4k", "16k", "64k")


@dataclass(frozen=True)
class Plan:
    """What is measured. prefixes: of the step times, None standing for the bundled captioner's prompt;

    checked, held: prefixes of the checks, and of the sections on memory and offloading.
    """

    device: torch.device
    build: Build
    pace: Pace
    prefixes: tuple[int | None, ...]
    checked: int
    held: int
    sections: tuple[str, ...] = SECTIONS
    minutes: float = 8.0
    settings: Settings = Settings()

    @classmethod
    def of(cls, device: torch.device) -> Plan:
        """On a CUDA GPU a model shaped like a 7B, one contestant at a time; else a small one, interleaved."""
        if device.type != "cuda":
            prefixes = (None, 1 << 10, 4 << 10, 16 << 10)
            return cls(device, SMALL, Pace(8, 24, together=True), prefixes, checked=256, held=4 << 10)
        prefixes = (None, 1 << 10, 4 << 10, 16 << 10, 64 << 10)
        return cls(device, SEVEN_B, Pace(3, 16, together=False), prefixes, checked=1 << 10, held=16 << 10)

    def only(self, contest: str) -> Plan:
        """Step times of one contest of `CONTESTS`."""
        prefix = None if contest == BUNDLED else 1024 * int(contest.removesuffix("k"))
        return replace(self, prefixes=(prefix,))

    def machine(self) -> dict[str, str | int]:
        """What the figures depend on, by name."""
        cuda = self.device.type == "cuda"
        return {
            "device": torch.cuda.get_device_name(self.device) if cuda else self.device.type,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "model": self.build.title,
        }


def run_bench(plan: Plan, say: Say = lambda text: None) -> list[Section]:
    """The sections of a plan, one after the other; each may take its share of the time that is left."""
    budget = Budget(60.0 * plan.minutes)
    contests = Contests(plan.device, plan.build)
    found = []
    with torch.cuda.device(plan.device) if plan.device.type == "cuda" else nullcontext():
        for at, name in enumerate(plan.sections):
            part = SHARES[name] / sum(SHARES[later] for later in plan.sections[at:])
            found.append(_section(name, plan, contests, budget.share(part), say))
    return found


def _section(name: str, plan: Plan, contests: Contests, budget: Budget, say: Say) -> Section:
    attempts = Attempts(budget, lambda text: say(f"{name}: {text}"))
    section = Section(name, left_out=attempts.left_out, failed=attempts.failed)
    begun = time.perf_counter()
    section.figures = attempts.run("model and prompt", lambda: _WORK[name](plan, contests, attempts)) or []
    wrong = [row for one in section.figures for row in one.rows if row.get("passed") is False]
    unchecked = name == "checks" and bool(section.left_out)  # what nobody looked at has not passed
    section.passed = not wrong and not section.failed and not unchecked
    section.seconds = time.perf_counter() - begun
    free()
    return section


def _checks(plan: Plan, contests: Contests, attempts: Attempts) -> list[Figures]:
    grounds: dict[str, Callable[[], Contest]] = {
        BUNDLED: lambda: contests.bundled,
        plan.build.name: lambda: contests.random(plan.checked),
    }
    grounds.setdefault(SMALL.name, lambda: contests.exact(plan.checked))
    return checks(grounds, attempts, plan.settings)


def _speed(plan: Plan, contests: Contests, attempts: Attempts) -> list[Figures]:
    prefixes = {BUNDLED if prefix is None else contest_name(prefix): prefix for prefix in plan.prefixes}
    return speed(contests, attempts, plan.settings, prefixes, plan.pace)


def _memory(plan: Plan, contests: Contests, attempts: Attempts) -> list[Figures]:
    return memories(contests.random(plan.held), attempts, plan.settings)


def _offload(plan: Plan, contests: Contests, attempts: Attempts) -> list[Figures]:
    return offloading(contests.random(plan.held), attempts, plan.settings, plan.pace)


def _graph(plan: Plan, contests: Contests, attempts: Attempts) -> list[Figures]:
    return graphs(
        contests.random(plan.held), contests.exact(plan.checked), attempts, plan.settings, plan.pace
    )


_WORK: dict[str, Callable[[Plan, Contests, Attempts], list[Figures]]] = {
    "checks": _checks,
    "speed": _speed,
    "memory": _memory,
    "offload": _offload,
    "graph": _graph,
}
