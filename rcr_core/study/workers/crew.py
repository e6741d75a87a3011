"""Workers that load the model elsewhere, and may die: one that does is replaced, only its task is lost."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rcr_core.errors import ScopeError, StudyError
from rcr_core.findings import Row
from rcr_core.study.decoding import Failure
from rcr_core.study.task import Identity, Task
from rcr_core.study.workers.base import Done, Lost, Workers

MAX_DEATHS = 3  # in a row, of workers that load the model
_LONGEST_START = 1800.0  # seconds without any worker; a cluster may have to make room for them first
_LOOK = 5.0  # seconds

Said = Identity | ScopeError | Row | Failure | None  # what a worker says; None is its death


@dataclass(eq=False)
class Member:
    """A worker by its `handle`: it loads the model until it is `ready`, and then has a task or none."""

    handle: Any
    ready: bool = False
    task: Task | None = None


class Crew(Workers):
    """Workers that say who they are when the model is loaded, and then one outcome a task."""

    kind: ClassVar[str]  # what one of them is, for people

    def __init__(self, count: int):
        self._members = [Member(self._start(at)) for at in range(count)]
        self._identity: Identity | None = None
        self._deaths = 0
        self._stopped = False
        self._since = time.monotonic()  # when a worker was last there

    @abstractmethod
    def _start(self, at: int) -> Any:
        """Begin to start the worker of a place; returns its handle at once."""

    @abstractmethod
    def _send(self, handle: Any, task: Task, picture: bytes) -> None:
        """Give a worker a task. One that died says so when it is heard."""

    @abstractmethod
    def _hear(self, handles: Sequence[Any], timeout: float) -> list[tuple[Any, Said]]:
        """What those say that have something to say; waits for the first."""

    @property
    def identity(self) -> Identity:
        while self._identity is None:
            self.collect(_LOOK)
        return self._identity

    @property
    def free(self) -> int:
        return sum(member.ready and member.task is None for member in self._members)

    def submit(self, task: Task, picture: bytes) -> None:
        member = next(member for member in self._members if member.ready and member.task is None)
        member.task = task
        self._send(member.handle, task, picture)

    def collect(self, timeout: float) -> list[Done]:
        awaited = {member.handle: member for member in self._members if member.task or not member.ready}
        heard = self._hear(list(awaited), timeout)
        done = [one for handle, said in heard for one in self._take(awaited[handle], said)]
        if any(member.ready for member in self._members):
            self._since = time.monotonic()
        elif time.monotonic() - self._since > _LONGEST_START:
            raise StudyError(
                f"no {self.kind} could be started", "is there room for it? ask for fewer --workers"
            )
        return done

    def _take(self, member: Member, said: Said) -> list[Done]:
        if said is None:
            return self._bury(member)
        if member.ready:
            task, member.task = member.task, None
            return [Done(task, said)]
        if isinstance(said, ScopeError):
            raise said
        if isinstance(said, Failure):
            raise StudyError(said.message, said.hint)
        member.ready, self._identity, self._deaths = True, said, 0
        return []

    def _bury(self, member: Member) -> list[Done]:
        if self._stopped:
            return []
        self._deaths += not member.ready
        if self._deaths >= MAX_DEATHS:
            raise StudyError(
                f"a {self.kind} died while it loaded the model, {MAX_DEATHS} times",
                "is there memory for a model per worker? ask for fewer --workers",
            )
        at = self._members.index(member)
        self._members[at] = Member(self._start(at))
        return [Done(member.task, Lost(f"a {self.kind} died"))] if member.task else []
