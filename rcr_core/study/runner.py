"""Takes a study through: hands tasks to workers, holds rows against their reference, writes them at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rcr_core.errors import ScopeError
from rcr_core.findings import ResultsFile, Row
from rcr_core.findings.kinds import REFERENCE
from rcr_core.study.decoding import Failure
from rcr_core.study.measure import against
from rcr_core.study.queue import TaskQueue
from rcr_core.study.task import Identity, Image, Task
from rcr_core.study.workers import Done, Lost, Workers

MAX_ATTEMPTS = 3  # of a task whose worker died
_PATIENCE = 0.5  # seconds between two looks at the stop flag


@dataclass(frozen=True)
class Failed:
    """A task without a row, and why. It is tried again when the study is resumed."""

    task: Task
    why: Failure


@dataclass(frozen=True)
class Progress:
    """How far a study is. `resumed` of the `done` were there when it began; `row` is the newest."""

    done: int
    total: int
    resumed: int
    failed: tuple[Failed, ...] = ()
    row: Row | None = None


class Study:
    """One go at the tasks of a study; those that the results file already holds are not run again.

    A row is written as soon as its run is done, with its fidelity: the uncompressed run of an image goes
    first. Where that fails, the other runs of the image fail with it.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        results: ResultsFile,
        workers: Workers,
        told: Callable[[Progress], None] = lambda progress: None,
    ):
        self._results = results
        self._workers = workers
        self._told = told
        self._stop = threading.Event()
        self._running = 0
        self._attempts: Counter[int] = Counter()
        identity = workers.identity
        known = [row for row in results.rows if Identity(row.model, row.dtype, row.weights) == identity]
        self._references = {_image_of(row): row for row in known if row.policy == REFERENCE}
        every: dict[str, Task] = {}
        for task in tasks:  # of those that are asked for twice the first counts, in its place
            every.setdefault(task.key(identity), task)
        open_tasks = [task for key, task in every.items() if key not in results.keys]
        self._queue = TaskQueue(open_tasks, self._references)
        resumed = len(every) - len(open_tasks)
        self.progress = Progress(resumed, len(every), resumed)

    def stop(self) -> None:
        """End the study, from any thread: tasks under way are given up, the rows stay."""
        self._stop.set()
        self._workers.stop()

    def run(self) -> Progress:
        """Go on until every task is done or has failed, or the study is stopped."""
        self._told(self.progress)
        for task in self._queue.orphans():
            self._fail(task, Failure("there is no uncompressed run of its image to hold it against"))
        while (self._queue or self._running) and not self._stop.is_set():
            self._submit()
            for done in self._workers.collect(_PATIENCE):
                self._running -= 1
                if not self._stop.is_set():
                    self._settle(done)
        return self.progress

    def _submit(self) -> None:
        while self._queue and self._workers.free:
            task = self._queue.pop()
            try:
                picture = task.sample.read()
            except ScopeError as error:
                self._fail(task, Failure(error.message, error.hint))
                continue
            self._workers.submit(task, picture)
            self._running += 1

    def _settle(self, done: Done) -> None:
        if isinstance(done.outcome, Row):
            self._keep(done.task, done.outcome)
        elif isinstance(done.outcome, Failure):
            self._fail(done.task, done.outcome)
        else:
            self._retry(done.task, done.outcome)

    def _keep(self, task: Task, row: Row) -> None:
        row = against(row, row if task.refers else self._references[task.image])
        self._results.add(row)
        if task.refers:
            self._references[task.image] = row
            self._queue.release(task.image)
        self._tell(done=self.progress.done + 1, row=row)

    def _retry(self, task: Task, lost: Lost) -> None:
        self._attempts[id(task)] += 1
        if self._attempts[id(task)] < MAX_ATTEMPTS:
            self._queue.push(task)
        else:
            self._fail(task, Failure(f"{lost.reason}, {MAX_ATTEMPTS} times", "is there memory enough?"))

    def _fail(self, task: Task, why: Failure) -> None:
        self._tell(failed=(*self.progress.failed, Failed(task, why)), row=None)
        if task.refers:
            for waiting in self._queue.drop(task.image):
                self._fail(waiting, Failure(f"its uncompressed run failed: {why.message}", why.hint))

    def _tell(self, **changes) -> None:
        self.progress = replace(self.progress, **changes)
        self._told(self.progress)


def _image_of(row: Row) -> Image:
    return row.data, row.sample, row.prompt, row.max_new_tokens
