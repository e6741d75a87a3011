"""What the thread of a run does: prepare it, decode it turn by turn, and say how it ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from rcr_core.captioning import CaptionRun
from rcr_core.errors import ScopeError
from rcr_core.out_of_memory import memory_guard
from rcr_core.runs.live import LiveRun
from rcr_core.runs.turns import Turns
from rcr_core.trace import StepRecord

_log = logging.getLogger(__name__)


def work(run: LiveRun, make: Callable[[], CaptionRun], turns: Turns) -> None:
    """Take a run to its end. Whatever happens, the run is over afterwards."""
    try:
        with memory_guard():
            source = make()
        if run.attach(source):
            _decode(run, source, turns)
            run.end()
    except ScopeError as error:
        run.fail(error)
    except BaseException as error:
        _log.exception("a run of %s failed", run.policy)
        name = type(error).__name__
        run.fail(ScopeError(f"the run ended on an unexpected {name}", "the log of the server says more"))


def _decode(run: LiveRun, source: CaptionRun, turns: Turns) -> None:
    records = iter(source)
    # A rehearsal decodes a whole caption before the first record: in a turn it would hold up everyone else.
    more = not source.rehearses or _advance(run, records)
    with turns.seat() as turn:
        while more:
            with turn():
                more = _advance(run, records)


def _advance(run: LiveRun, records: Iterator[StepRecord]) -> bool:
    record = next(records, None)
    if record is not None:
        run.push(record)
    return record is not None
