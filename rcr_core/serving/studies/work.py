"""What the thread of a study does: wait for the model, decode its tasks beside people's runs, end it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rcr_core.captioning import Captioner
from rcr_core.errors import ScopeError
from rcr_core.findings import ResultsFile
from rcr_core.findings.results import NAME
from rcr_core.policies import POLICIES
from rcr_core.runs.turns import Turns
from rcr_core.serving.studies.asked import Asked
from rcr_core.serving.studies.held import HeldStudy
from rcr_core.serving.workbench import Workbench
from rcr_core.study.decoding import Decoder
from rcr_core.study.runner import Study
from rcr_core.study.task import Task
from rcr_core.study.workers import InlineWorkers

_LOOK = 0.2  # seconds between two looks whether a study that waits for the model was stopped
_log = logging.getLogger(__name__)


def work(held: HeldStudy, asked: Asked, workbench: Workbench, turns: Turns) -> None:
    """Take a study to its end. Whatever happens, it is over afterwards."""
    try:
        with workbench.models.held():
            if (captioner := _captioner(held, workbench)) is not None:
                _decode(held, asked, SharedWorkers(captioner, turns, held))
        held.end()
    except ScopeError as error:
        held.end(error)
    except BaseException as error:
        _log.exception("a study failed")
        name = type(error).__name__
        held.end(ScopeError(f"the study ended on an unexpected {name}", "the log of the server says more"))


class SharedWorkers(InlineWorkers):
    """One worker on a model that runs of people are decoded on too: it takes its turn for every token."""

    def __init__(self, captioner: Captioner, turns: Turns, held: HeldStudy):
        super().__init__(Decoder(captioner, self._turn))
        self._turns = turns
        self._held = held
        self._rehearses = False

    def submit(self, task: Task, picture: bytes) -> None:
        self._rehearses = POLICIES[task.variant.policy].rehearses
        super().submit(task, picture)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._held.stopping.is_set():
            self.stop()  # also a task that began while the study was being stopped
        if self._rehearses:  # a whole caption, before the first token: in a turn it would hold up everyone
            self._rehearses = False
            yield
            return
        # A seat for one token: whoever keeps one must take turn after turn, and a study also measures.
        with self._turns.seat() as turn, turn():
            yield


def _captioner(held: HeldStudy, workbench: Workbench) -> Captioner | None:
    """The model, None where the study was stopped before it was there. Raises `LoadError`."""
    while not held.stopping.is_set():
        try:
            return workbench.captioner(_LOOK)
        except TimeoutError:
            continue
    return None


def _decode(held: HeldStudy, asked: Asked, workers: SharedWorkers) -> None:
    with TemporaryDirectory(prefix="rcr-study-") as folder:
        results = ResultsFile(Path(folder) / NAME)
        try:
            study = Study(asked.tasks, results, workers, held.tell)
            held.on_stop(study.stop)
            study.run()
        finally:
            workers.close()
            results.close()
