"""`study`: many images under many policies, with a results file, a report, and resuming."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tqdm import tqdm

from rcr_core.captioning import Captioner
from rcr_core.console import arguments
from rcr_core.console.report import write
from rcr_core.errors import StudyError
from rcr_core.findings import ResultsFile, read_results
from rcr_core.findings.results import NAME
from rcr_core.models import load_model
from rcr_core.models.asking import placement_of
from rcr_core.policies import POLICIES
from rcr_core.study.data import open_data
from rcr_core.study.decoding import Decoder
from rcr_core.study.runner import Failed, Progress, Study
from rcr_core.study.task import Part, Task, plan
from rcr_core.study.variants import SWEEPS, of_policies, sweep
from rcr_core.study.workers import InlineWorkers, ModelChoice, ProcessWorkers, RayWorkers, Workers

ALL = "all"
_NAMED_FAILURES = 5
_QUIET_INTERVAL = 30.0  # seconds between two lines of progress where nobody watches a terminal

_EPILOG = """data:
  SCENES:N, QUESTIONS:N     held-out drawn scenes, to be described or asked one short question each
  FOLDER                    every picture in it
  FILE.jsonl, FILE.parquet  rows of image, and as you have them: prompt, references, answers, id
  textcaps, detailcaps, textvqa
                            public sets from the hub, or as NAME@FOLDER from its Parquet files on this disk

example: python -m rcr_core study --data SCENES:20 --policies rcr,bacon --out results"""


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "study",
        help="run policies over a data set and report what they keep",
        usage="python -m rcr_core study --data WHAT [--data WHAT] [--policies NAMES] [options]",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_what(parser)
    _add_where(parser)
    arguments.add_model(parser)
    arguments.add_settings(parser)
    parser.set_defaults(run=run)


def _add_what(parser: argparse.ArgumentParser) -> None:
    known = ", ".join(SWEEPS)
    count = arguments.count
    add = parser.add_argument
    add("--data", action="append", required=True, metavar="WHAT", help="see below; may be repeated")
    add("--policies", default=ALL, metavar="NAMES", help="separated by commas, or all (default: all)")
    add(
        "--sweeps",
        default="",
        metavar="NAMES",
        help=f"also vary settings on the first data set: all, or of {known} (default: none)",
    )
    add("--sweep-limit", type=count, metavar="N", help="sweep over the first N images only")
    add("--limit", type=count, metavar="N", help="at most N images of a data set")
    add("--seed", type=int, metavar="N", help="draw the images of --limit at random, by this seed")
    add("--prompt", metavar="TEXT", help="ask this instead of the data's own prompt")
    add("--max-new-tokens", type=count, metavar="N", help="instead of the data's own")


def _add_where(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", default="results", metavar="FOLDER", help="results and report go here (default: results)")
    add(
        "--workers",
        type=arguments.count,
        metavar="N",
        help="processes with a model each (default: this one)",
    )
    add(
        "--ray",
        metavar="ADDRESS",
        help="run on a Ray cluster: auto (this machine's, or a new one), local (a new one) or where it is; "
        "one actor per GPU, or --workers of them",
    )


def run(options: argparse.Namespace) -> int:
    """1 where tasks failed, or the study was stopped."""
    tasks = _tasks(options)
    results = ResultsFile(Path(options.out) / NAME)
    try:
        progress, whole = _decode(options, tasks, results)
    finally:
        results.close()
    failures = [_told(failed) for failed in progress.failed] if progress else []
    for line in failures[:_NAMED_FAILURES]:
        print(f"failed: {line}", file=sys.stderr)
    if (more := len(failures) - _NAMED_FAILURES) > 0:
        print(f"failed: {more} more, the report lists them", file=sys.stderr)
    rows = read_results([results.path])  # an interrupt may have come between a line and its note in memory
    if not whole:
        print(f"stopped: {len(rows)} runs are kept in {results.path}, the same command goes on")
    if rows:
        command = f"python -m rcr_core {shlex.join(options.words)}"
        write(rows, Path(options.out), command, failures)
    return int(bool(failures) or not whole)


def _tasks(options: argparse.Namespace) -> list[Task]:
    """Everything that is asked for. Raises `StudyError` and `SettingsError` before a model is loaded."""
    base = arguments.settings_of(options)
    policies = list(POLICIES) if options.policies == ALL else _names(options.policies)
    main = of_policies(policies, base)
    sets = [
        open_data(spec, options.limit, options.seed, options.prompt, options.max_new_tokens)
        for spec in options.data
    ]
    parts = [Part(data, main) for data in sets]
    if not any(data.samples for data in sets):
        raise StudyError("there is nothing to run", "the data set is empty")
    if sweeps := list(SWEEPS) if options.sweeps == ALL else _names(options.sweeps):
        parts.append(Part(sets[0], sweep(sweeps, policies, base), options.sweep_limit))
    return plan(parts)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _workers(options: argparse.Namespace) -> Workers:
    model = (options.model, placement_of(options))
    if options.ray:
        return RayWorkers(ModelChoice(*model), options.ray, options.workers or 0)
    if options.workers and options.workers > 1:
        threads = max(1, (os.cpu_count() or 1) // options.workers)
        return ProcessWorkers(ModelChoice(*model, threads), options.workers)
    return InlineWorkers(Decoder(Captioner(load_model(options.model, **vars(model[1])))))


def _decode(
    options: argparse.Namespace, tasks: list[Task], results: ResultsFile
) -> tuple[Progress | None, bool]:
    """How far the study came, and whether it came to its end or was interrupted."""
    workers = study = None
    watched = sys.stderr.isatty()
    try:
        with _ended_like_an_interrupt():
            workers = _workers(options)
            _ = workers.identity  # before the bar: loading is no part of the time that it tells
            with tqdm(unit="run", dynamic_ncols=True, mininterval=0.2 if watched else _QUIET_INTERVAL) as bar:
                study = Study(tasks, results, workers, partial(_show, bar))
                return study.run(), True
    except KeyboardInterrupt:
        return study and study.progress, False
    finally:
        if workers is not None:
            workers.close()


@contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """A cluster or a service manager that ends the study leaves it as Ctrl+C does: its rows and a report."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(bar: tqdm, progress: Progress) -> None:
    if bar.total is None:
        bar.reset(progress.total)
        bar.initial = bar.n = progress.resumed
        bar.refresh()
    if progress.row is not None:
        bar.set_postfix_str(f"{progress.row.policy}, {progress.row.sample}", refresh=False)
    bar.update(progress.done + len(progress.failed) - bar.n)


def _told(failed: Failed) -> str:
    why = failed.why
    hint = f" ({why.hint})" if why.hint else ""
    return f"{failed.task.variant.policy} of {failed.task.sample.id}: {why.message}{hint}"
