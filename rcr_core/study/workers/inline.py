"""Tasks done by the process of the study itself, one at a time."""

from __future__ import annotations

from rcr_core.study.decoding import Decoder
from rcr_core.study.task import Identity, Task
from rcr_core.study.workers.base import Done, Workers


class InlineWorkers(Workers):
    """One worker, without a process of its own: the default, and what the page uses."""

    def __init__(self, decoder: Decoder):
        self._decoder = decoder
        self._taken: tuple[Task, bytes] | None = None

    @property
    def identity(self) -> Identity:
        return self._decoder.identity

    @property
    def free(self) -> int:
        return int(self._taken is None)

    def submit(self, task: Task, picture: bytes) -> None:
        self._taken = task, picture

    def collect(self, timeout: float) -> list[Done]:
        if self._taken is None:
            return []
        (task, picture), self._taken = self._taken, None
        return [Done(task, self._decoder.decode(task, picture))]

    def stop(self) -> None:
        self._decoder.stop()

    def close(self) -> None:
        self._taken = None
