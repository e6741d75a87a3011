"""Tasks done by actors of a Ray cluster: one holds a model, on a GPU of its own where there are any.

Ray is an optional package, imported only when it is asked for. The project and the model must be at the same
place on every machine of the cluster.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rcr_core.captioning import Captioner
from rcr_core.errors import ScopeError, StudyError
from rcr_core.findings import Row
from rcr_core.models import load_model
from rcr_core.study.decoding import Decoder, Failure, without_reader
from rcr_core.study.task import Identity, Task
from rcr_core.study.workers.base import ModelChoice
from rcr_core.study.workers.crew import Crew, Said

AUTO, LOCAL = "auto", "local"
_PATIENCE = 10.0  # seconds that a cluster has to answer
_LONGEST = 400  # characters of a reason


@dataclass(eq=False)
class _Handle:
    actor: Any
    answer: Any  # the reference to what it says next


class RayWorkers(Crew):
    """Actors on the cluster at `address`; "auto" is the one of this machine, or a new one; "local" a new one.

    count: actors; 0 is one per GPU of the cluster, or one per CPU where there are no GPUs. Those for which
    the cluster has no room wait for it while the others work. Raises `StudyError` where the package is
    missing or the cluster does not answer.
    """

    kind = "Ray actor"

    def __init__(self, choice: ModelChoice, address: str = AUTO, count: int = 0):
        self._ray = ray = _imported()
        self._own = not ray.is_initialized()  # the program that calls may be a driver already
        if self._own:
            _connect(ray, address, count)
        found = ray.cluster_resources()
        gpus = int(found.get("GPU", 0))
        self._choice = choice
        self._actor_class = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0)(Actor)
        super().__init__(count or gpus or int(found.get("CPU", 1)))

    def stop(self) -> None:
        self._stopped = True
        for member in self._members:
            self._ray.kill(member.handle.actor)

    def close(self) -> None:
        if self._ray.is_initialized():
            self.stop()
            if self._own:
                self._ray.shutdown()

    def _start(self, at: int) -> _Handle:
        actor = self._actor_class.remote(self._choice)
        return _Handle(actor, actor.identity.remote())

    def _send(self, handle: _Handle, task: Task, picture: bytes) -> None:
        handle.answer = handle.actor.decode.remote(without_reader(task), picture)

    def _hear(self, handles: Sequence[_Handle], timeout: float) -> list[tuple[_Handle, Said]]:
        by_answer = {handle.answer: handle for handle in handles}
        over, _ = self._ray.wait(list(by_answer), timeout=timeout) if by_answer else ([], [])
        return [(by_answer[answer], self._heard(answer)) for answer in over]

    def _heard(self, answer: Any) -> Said:
        try:
            return self._ray.get(answer)
        except self._ray.exceptions.RayActorError:
            return None
        except self._ray.exceptions.RayError as error:
            return Failure(f"Ray failed: {type(error).__name__}: {error}"[:_LONGEST])


class Actor:
    """What an actor is made of. A model that cannot be loaded is told by `identity`, not by its death."""

    def __init__(self, choice: ModelChoice):
        self._error: ScopeError | None = None
        try:
            self._decoder = Decoder(Captioner(load_model(choice.model, **vars(choice.placement))))
        except ScopeError as error:
            self._error = error

    def identity(self) -> Identity | ScopeError:
        return self._error or self._decoder.identity

    def decode(self, task: Task, picture: bytes) -> Row | Failure:
        return self._decoder.decode(task, picture)


def _imported() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # there is nothing here that they should stand back for
    try:
        import ray  # noqa: PLC0415 - optional
    except ImportError:
        raise StudyError("--ray needs a package that is missing", 'pip install "ray"') from None
    return ray


def _connect(ray: Any, address: str, count: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address not in (AUTO, LOCAL):
        _knock(address)
    with suppress(ConnectionError):  # on this machine there is none yet
        if address != LOCAL:
            ray.init(address=address, **quiet)
            return
    ray.init(address=LOCAL, num_cpus=count or None, include_dashboard=False, **quiet)


def _knock(address: str) -> None:
    """Ray would go on trying for minutes where nobody answers."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, ValueError):
        raise StudyError(
            f"no Ray cluster answers at {address}", "it is HOST:PORT of a cluster, or auto, or local"
        ) from None
