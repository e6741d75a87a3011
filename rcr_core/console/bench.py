"""`bench`: checks, speed and memory of the policies on this machine."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, replace

import torch

from rcr_core.bench import CONTESTS, SECTIONS, Plan, Section, run_bench
from rcr_core.console.arguments import count
from rcr_core.console.bench_tables import as_lines, as_markdown
from rcr_core.models import pick_device


def add_parser(commands) -> None:
    parser = commands.add_parser("bench", help="check and measure the policies on this machine")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    parser.add_argument(
        "--sections", type=_sections, metavar="A,B", help=f"some of {','.join(SECTIONS)} (default: all)"
    )
    parser.add_argument(
        "--only", choices=CONTESTS, help="step times of one contest, and no other section unless it is named"
    )
    parser.add_argument("--minutes", type=_minutes, default=8.0, help="time that it may take (default: 8)")
    parser.add_argument("--threads", type=count, help="CPU threads (default: torch's choice)")
    parser.add_argument("--rounds", type=count, help="turns of every contestant (default: 8; 3 on a GPU)")
    parser.add_argument("--steps", type=count, help="decode steps a turn (default: 24; 16 on a GPU)")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print one JSON object")
    forms.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """1 where a check did not pass or a section failed, else 0."""
    plan = _plan(options)
    if options.threads:
        torch.set_num_threads(options.threads)
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:6.1f} s] {text}", file=sys.stderr, flush=True)

    sections = run_bench(plan, say)
    machine = plan.machine()
    if options.json:
        print(json.dumps({"machine": machine, "sections": {one.name: _as_dict(one) for one in sections}}))
    else:
        lines = as_markdown if options.markdown else as_lines
        print("\n".join(lines(machine, sections)))
    return 0 if all(section.passed for section in sections) else 1


def _plan(options: argparse.Namespace) -> Plan:
    plan = Plan.of(pick_device(options.device))
    if options.only:
        plan = plan.only(options.only)
    sections = options.sections or (("speed",) if options.only else SECTIONS)
    rounds, steps = options.rounds or plan.pace.rounds, options.steps or plan.pace.steps
    pace = replace(plan.pace, rounds=rounds, steps=steps)
    return replace(plan, sections=sections, pace=pace, minutes=options.minutes)


def _as_dict(section: Section) -> dict[str, object]:
    """A section for JSON: its tables by their ids."""
    figures = {one.id: {"title": one.title, "rows": one.rows, "note": one.note} for one in section.figures}
    return {**asdict(replace(section, figures=[])), "figures": figures}


def _sections(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in SECTIONS]:
        raise argparse.ArgumentTypeError(f"unknown section {unknown[0]!r}, there are {', '.join(SECTIONS)}")
    return names


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0.0 < minutes < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number of minutes above 0")
    return minutes
