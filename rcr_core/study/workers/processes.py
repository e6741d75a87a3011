"""Tasks done by processes of this machine, each with a model of its own and a pipe to it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch

from rcr_core.captioning import Captioner
from rcr_core.errors import ScopeError
from rcr_core.models import load_model
from rcr_core.study.decoding import Decoder, without_reader
from rcr_core.study.task import Task
from rcr_core.study.workers.base import ModelChoice
from rcr_core.study.workers.crew import Crew, Said

_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy torch's threads in whatever state
_PATIENCE = 5.0  # seconds that a process has to end


@dataclass(eq=False)
class _Handle:
    process: BaseProcess
    pipe: Connection


class ProcessWorkers(Crew):
    """`count` processes, on one GPU each where there are several."""

    kind = "worker process"

    def __init__(self, choice: ModelChoice, count: int):
        self._choice = choice
        super().__init__(count)

    def stop(self) -> None:
        self._stopped = True
        for member in self._members:
            member.handle.process.kill()  # what it does at the moment counts for nothing

    def close(self) -> None:
        self.stop()
        for member in self._members:
            member.handle.process.join(_PATIENCE)
            member.handle.pipe.close()

    def _start(self, at: int) -> _Handle:
        ours, theirs = _SPAWN.Pipe()
        placement = self._choice.placement
        if placement.device_map == "none":
            placement = replace(placement, device=_device(placement.device, at))
        choice = replace(self._choice, placement=placement)
        process = _SPAWN.Process(target=_serve, args=(choice, theirs), name="rcr study", daemon=True)
        process.start()
        theirs.close()  # so that the pipe ends when the process does
        return _Handle(process, ours)

    def _send(self, handle: _Handle, task: Task, picture: bytes) -> None:
        with suppress(OSError):
            handle.pipe.send((without_reader(task), picture))

    def _hear(self, handles: Sequence[_Handle], timeout: float) -> list[tuple[_Handle, Said]]:
        by_pipe = {handle.pipe: handle for handle in handles}
        return [(by_pipe[pipe], _heard(by_pipe[pipe])) for pipe in wait(list(by_pipe), timeout)]


def _heard(handle: _Handle) -> Said:
    try:
        return handle.pipe.recv()
    except (EOFError, OSError):
        handle.process.join(_PATIENCE)
        handle.pipe.close()
        return None


def _device(name: str, at: int) -> str:
    """The GPU of a worker, one after the other where there are several to choose from."""
    count = torch.cuda.device_count() if name in ("auto", "cuda") else 0
    return f"cuda:{at % count}" if count > 1 else name


def _serve(choice: ModelChoice, pipe: Connection) -> None:
    """A worker's process: says which model it has, then answers every task with its outcome."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at the terminal it reaches all; the study acts on it
    if choice.threads:
        torch.set_num_threads(choice.threads)
    try:
        decoder = Decoder(Captioner(load_model(choice.model, **vars(choice.placement))))
    except ScopeError as error:
        pipe.send(error)
        return
    with suppress(EOFError, OSError):  # the study is gone
        pipe.send(decoder.identity)
        while True:
            pipe.send(decoder.decode(*pipe.recv()))
