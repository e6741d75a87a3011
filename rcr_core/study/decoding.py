"""A worker's part of a study: the model, and one task after the other on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch

from rcr_core.captioning import Captioner, CaptionRequest, CaptionRun
from rcr_core.errors import ScopeError
from rcr_core.findings import Row
from rcr_core.models import PreparedPrompt, fingerprint, open_image, prepare
from rcr_core.study.measure import row_of
from rcr_core.study.task import Identity, Task

Turn = Callable[[], AbstractContextManager]

_LONGEST = 400  # characters of a reason
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """Why a task has no row."""

    message: str
    hint: str = ""


class Decoder:
    """Decodes tasks on a loaded model. What a picture was prepared to is kept for the next task on it.

    turn: what is entered for every token, where others decode on the same model.
    """

    def __init__(self, captioner: Captioner, turn: Turn = nullcontext):
        self.captioner = captioner
        self._turn = turn
        self._prepared: tuple[tuple, PreparedPrompt] | None = None
        self._run: CaptionRun | None = None
        self._stopped = False
        loaded = captioner.loaded
        self.identity = Identity(loaded.name, loaded.dtype_name, fingerprint(loaded.model))

    def decode(self, task: Task, picture: bytes) -> Row | Failure:
        """The row of a task, or why there is none. `picture` is the file of its image."""
        try:
            return self._decode(task, picture)
        except ScopeError as error:
            return Failure(error.message, error.hint)
        except torch.AcceleratorError:
            raise  # nothing will run on the device any more: the worker has to be replaced
        except Exception as error:  # one odd picture must not end a study of thousands
            _log.exception("%s of %s failed", task.variant.policy, task.sample.id)
            return Failure(f"it ended on an unexpected {type(error).__name__}: {error}"[:_LONGEST])

    def _decode(self, task: Task, picture: bytes) -> Row | Failure:
        began = time.perf_counter()
        self._run = self.captioner.run(self._prompt(task, picture), _request(task))
        if self._stopped:  # between two tasks, when there was no run to stop
            self._run.stop()
        records = iter(self._run)
        more = True
        while more:
            with self._turn():
                more = next(records, None) is not None
        trace = self._run.trace()
        if trace.meta.stop_reason == "stopped":
            return Failure("the study was stopped")
        return row_of(trace, task, self.identity.weights, time.perf_counter() - began)

    def stop(self) -> None:
        """End the task under way, from any thread, and all that come after: they have no row."""
        self._stopped = True
        if self._run is not None:
            self._run.stop()

    def _prompt(self, task: Task, picture: bytes) -> PreparedPrompt:
        sample = task.sample
        name = (task.data, sample.id, sample.prompt, sample.max_new_tokens)
        if self._prepared is None or self._prepared[0] != name:
            image = open_image(picture)
            prepared = prepare(self.captioner.loaded, [image], sample.prompt, sample.max_new_tokens)
            self._prepared = (name, prepared)
        return self._prepared[1]


def without_reader(task: Task) -> Task:
    """A task that can be sent to another process: the picture's bytes travel beside it."""
    return replace(task, sample=replace(task.sample, read=bytes))


def _request(task: Task) -> CaptionRequest:
    sample, variant = task.sample, task.variant
    return CaptionRequest(
        variant.policy, variant.settings, max_new_tokens=sample.max_new_tokens, scene=sample.scene
    )
