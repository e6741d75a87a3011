"""One run of a store, from its place in the queue to its trace."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np

from rcr_core.bundled.scenes import CAPTION_PROMPT, Scene
from rcr_core.captioning import CaptionRun
from rcr_core.errors import ScopeError
from rcr_core.runs.subject import subject_of
from rcr_core.runs.truth import truth
from rcr_core.trace import StepRecord, Trace

FINISHED = ("done", "stopped", "error")
_RECENT = 16  # steps that the rate is taken over
_BESIDE = 4096  # bytes that a run takes beside its trace, about


class LiveRun:
    """A run that waits, goes on or is over. Everything may be read, and `stop` called, from any thread.

    id         names the run; it cannot be guessed, but is no permission
    key        permits to read this one run
    kind       run, file (opened) or example (ships with the page)
    status     queued, loading, prefill, decoding; done, stopped, error
    place      1 and up while queued, else 0
    error      why it ended with the status error
    steps      how many are recorded
    newest     when the newest was, in seconds of the epoch, as `created`
    bytes      what it holds, its metadata included
    used       when the store last gave it to somebody, on the store's clock
    """

    def __init__(
        self,
        owner: str,
        *,
        kind: str,
        label: str,
        policy: str,
        scene: Scene | None = None,
        public: bool = False,
        run_id: str = "",
        on_stop: Callable[[], None] = lambda: None,
    ):
        self.id = run_id or secrets.token_urlsafe(9)
        self.key = secrets.token_urlsafe(18)
        self.owner, self.kind, self.label, self.policy = owner, kind, label, policy
        self.scene, self.public = scene, public
        self.created = self.newest = time.time()
        self.used = 0.0
        self.status, self.place = "queued", 0
        self.error: ScopeError | None = None
        self.steps = self.bytes = 0
        self._on_stop = on_stop
        self._condition = threading.Condition()
        self._recent: deque[float] = deque(maxlen=_RECENT + 1)
        self._source: CaptionRun | None = None
        self._trace: Trace | None = None
        self._prompt, self._text, self._subject = "", "", ""

    # ---- for whoever reads it

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    def belongs_to(self, owner: str) -> bool:
        """Whether this owner may stop and drop it. Runs for everybody belong to nobody."""
        return bool(owner) and owner == self.owner

    @property
    def decodes(self) -> bool:
        """Whether a thread is at work on the model for it, the prefill included."""
        with self._condition:
            return self._source is not None

    @property
    def rate(self) -> float:
        """Steps per second over the last few; 0 before the second one."""
        with self._condition:
            if len(self._recent) < 2:
                return 0.0
            return (len(self._recent) - 1) / max(self._recent[-1] - self._recent[0], 1e-9)

    @property
    def subject(self) -> str:
        """What the run is compared by (see `rcr_core.runs.subject`); empty until it is prepared."""
        if not self._subject and (trace := self.trace()) is not None:
            self._subject = subject_of(trace)
        return self._subject

    def trace(self) -> Trace | None:
        """What is recorded so far; None until the run is prepared. At least `steps` steps as read before."""
        with self._condition:
            source, trace = self._source, self._trace
        return source.trace() if source is not None else trace

    def truth(self) -> dict[str, object] | None:
        """How the text so far stands against the scene (see `rcr_core.runs.truth`).

        None where the picture is no bundled scene, or the prompt does not ask for the scene's caption.
        """
        with self._condition:
            prompt, text = self._prompt, self._text
        if self.scene is None or prompt != CAPTION_PROMPT:
            return None
        return truth(self.scene, text)

    def wait(self, steps: int, timeout: float) -> bool:
        """Wait until there are `steps` steps, or the run is over, or its status or place changes.

        False where `timeout` seconds passed before.
        """
        with self._condition:
            standing = self.status, self.place
            return self._condition.wait_for(
                lambda: self.finished or self.steps >= steps or (self.status, self.place) != standing, timeout
            )

    def stop(self) -> None:
        """End the run: at once before its prefill, else after that or the present token.

        What is recorded stays.
        """
        with self._condition:
            if self._source is not None:
                self._source.stop()
            else:
                self._finish("stopped")
        self._on_stop()

    # ---- for the store and the worker

    def queue(self, place: int) -> None:
        """Wait at a place of the queue."""
        with self._condition:
            self.place = place
            self._condition.notify_all()

    def begin(self) -> bool:
        """Leave the queue; False where the run was stopped there."""
        with self._condition:
            return self._move("loading")

    def attach(self, source: CaptionRun) -> bool:
        """Take what was prepared; False where the run was stopped meanwhile."""
        with self._condition:
            if self._move("prefill"):
                self._source, self._prompt = source, source.prompt.prompt
            return not self.finished

    def push(self, record: StepRecord) -> None:
        """Note a step that the source has recorded."""
        size = sum(value.nbytes for value in _arrays(record)) - record.selected.nbytes
        size += record.selected[record.fire > 0].nbytes // 2  # as the trace has it: once, in 16 bits
        with self._condition:
            self._text += record.text or ""
            self.newest = time.time()
            self.bytes += size
            self.steps = record.step + 1
            self._recent.append(time.perf_counter())
            self._move("decoding")

    def end(self) -> None:
        """The source has no more steps."""
        trace = _compact(self._source.trace())
        self._finish("stopped" if trace.meta.stop_reason == "stopped" else "done", trace)

    def fail(self, error: ScopeError) -> None:
        """The run ended on an error; what was recorded stays."""
        # Frames of the traceback would keep the run's tensors alive for as long as the error.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        trace = None
        if self._source is not None:
            with suppress(ScopeError):
                trace = _compact(self._source.trace())
        self._finish("error", trace, error)

    def hold(self, trace: Trace) -> None:
        """Hold a trace that was recorded elsewhere."""
        self._prompt, self._text, self.steps = trace.meta.prompt, trace.text, trace.steps
        self._finish("done", trace)

    def _move(self, status: str) -> bool:
        """Go to the next status, unless the run is over."""
        if self.finished:
            return False
        if self.status != status:
            self.status, self.place = status, 0
        self._condition.notify_all()
        return True

    def _finish(self, status: str, trace: Trace | None = None, error: ScopeError | None = None) -> None:
        size = self.bytes + _BESIDE if trace is None else _size(trace)
        with self._condition:
            if self.finished:
                return
            # The source goes: it holds the prompt's tensors. Before the status, which says that all is there.
            self._source, self._trace, self.error, self.bytes = None, trace, error, size
            self.status, self.place = status, 0
            self._condition.notify_all()


def _arrays(record: StepRecord) -> list[np.ndarray]:
    values = (getattr(record, spec.name) for spec in fields(record))
    return [value for value in values if isinstance(value, np.ndarray)]


def _size(trace: Trace) -> int:
    """Bytes of a run with this trace. A file's metadata may be as large as its arrays."""
    arrays = sum(value.nbytes for value in trace.arrays().values())
    return _BESIDE + len(trace.meta.to_json()) + arrays


def _compact(trace: Trace) -> Trace:
    """The trace on arrays of its own: those of a run are views of buffers of up to twice the size."""
    copies = {name: value.copy() for name, value in trace.arrays().items()}
    for value in copies.values():
        value.flags.writeable = False
    return replace(trace, **copies)
