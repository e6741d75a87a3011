"""The bench: checks, step times, memory and offloading of the policies, on the device at hand."""

from rcr_core.bench.contests import Contest, random_contest
from rcr_core.bench.plan import CONTESTS, SECTIONS, Plan, run_bench
from rcr_core.bench.section import Column, Figures, Section

__all__ = [
    "CONTESTS",
    "SECTIONS",
    "Column",
    "Contest",
    "Figures",
    "Plan",
    "Section",
    "random_contest",
    "run_bench",
]
