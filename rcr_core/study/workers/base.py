"""What the workers of a study have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from rcr_core.findings import Row
from rcr_core.models import Placement
from rcr_core.study.decoding import Failure
from rcr_core.study.task import Identity, Task


@dataclass(frozen=True)
class ModelChoice:
    """Which model a worker loads, as `load_model` takes it; `threads` of torch, 0 for its own choice."""

    model: str
    placement: Placement = Placement()
    threads: int = 0


@dataclass(frozen=True)
class Lost:
    """The worker died over a task, which may be tried again."""

    reason: str


@dataclass(frozen=True)
class Done:
    """A task that is over, one way or another."""

    task: Task
    outcome: Row | Failure | Lost


class Workers(ABC):
    """Takes tasks and gives them back when they are done, in any order."""

    @property
    @abstractmethod
    def identity(self) -> Identity:
        """The model that the workers have loaded; waits for it. Raises `LoadError` and `StudyError`."""

    @property
    @abstractmethod
    def free(self) -> int:
        """How many tasks can be taken now."""

    @abstractmethod
    def submit(self, task: Task, picture: bytes) -> None:
        """Take a task; `picture` is the file of its image. Only where a worker is free."""

    @abstractmethod
    def collect(self, timeout: float) -> list[Done]:
        """Tasks that are done; waits up to `timeout` seconds for anything to happen.

        Raises `StudyError` where no worker can be had any more.
        """

    @abstractmethod
    def stop(self) -> None:
        """End what is under way, from any thread; nothing is done after it."""

    @abstractmethod
    def close(self) -> None:
        """Let the workers go. What was not collected is lost."""
