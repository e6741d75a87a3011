"""One run from a picture and a prompt to a trace: what the command line, the page and a study all start.

`Captioner` holds a loaded model and its engine; `CaptionRun` is one run on it: iterate over it for the
records, ask for the trace at any time, stop it from any thread.
"""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version

from torch import Tensor

from rcr_core.edits import Edit, Gate
from rcr_core.engine import Engine, Recorder, Session, TextStream
from rcr_core.errors import SettingsError
from rcr_core.models import LoadedModel, PreparedPrompt
from rcr_core.policies import POLICIES, make_policy, unknown_policy
from rcr_core.settings import Settings
from rcr_core.trace import StepRecord, Trace, TraceBuilder, TraceMeta

MAX_NEW_TOKENS = 4096


@dataclass(frozen=True)
class CaptionRequest:
    """What to run. `replay` dictates the first tokens: a fork replays its parent's up to the step of the
    fork.
    """

    policy: str = "rcr"
    settings: Settings = field(default_factory=Settings)
    edits: tuple[Edit, ...] = ()
    max_new_tokens: int = 320
    replay: tuple[int, ...] = ()
    repetition_penalty: float = 1.0  # 1 is none; a checkpoint's own is reported, never applied by itself

    def __post_init__(self):
        if self.policy not in POLICIES:
            raise unknown_policy(self.policy)
        if not 0 <= self.max_new_tokens <= MAX_NEW_TOKENS:
            raise SettingsError(f"max_new_tokens must be in [0, {MAX_NEW_TOKENS}], got {self.max_new_tokens}")
        if not 0.1 <= self.repetition_penalty <= 10:
            raise SettingsError(f"repetition_penalty must be in [0.1, 10], got {self.repetition_penalty}")

    def limits(self) -> dict[str, float]:
        """What a trace records beside the policy's settings."""
        return {"max_new_tokens": self.max_new_tokens, "repetition_penalty": self.repetition_penalty}


class Captioner:
    """A loaded model, ready for runs. Its attention is set once; `generate` keeps working on it."""

    def __init__(self, loaded: LoadedModel):
        self.loaded = loaded
        self.engine = Engine(loaded.model)

    def run(self, prompt: PreparedPrompt, request: CaptionRequest) -> CaptionRun:
        return CaptionRun(self, prompt, request)


class CaptionRun:
    """One run. Iterate once; `trace()` is complete whenever it is called, `stop()` ends the run after this
    step.
    """

    def __init__(self, captioner: Captioner, prompt: PreparedPrompt, request: CaptionRequest):
        self.captioner = captioner
        self.prompt = prompt
        self.request = request
        gate = Gate(request.edits)
        self.policy = make_policy(request.policy, request.settings, gate, observe=True)
        self.session: Session | None = None
        self._check_edits()
        prefix = prompt.length - min(request.settings.window, prompt.length)
        gate.check(captioner.engine.shape.layers, prefix, request.settings.select)
        self._builder = TraceBuilder(self._meta(), prompt.geometry, prompt.image_png)
        self._stop = threading.Event()
        self._reason = ""
        self._started = 0.0

    def stop(self) -> None:
        """End the run after the present step; what was recorded stays."""
        self._stop.set()

    def trace(self) -> Trace:
        """The trace as far as the run has come."""
        return self._builder.snapshot(stop_reason=self._reason)

    def __iter__(self) -> Iterator[StepRecord]:
        """Decode, one record per token. Errors end the run with stop reason `error` and are raised."""
        try:
            yield from self._records()
        except (GeneratorExit, KeyboardInterrupt):
            self._reason = "stopped"
            raise
        except BaseException:
            self._reason = "error"
            raise

    def _records(self) -> Iterator[StepRecord]:
        engine, loaded, request = self.captioner.engine, self.captioner.loaded, self.request
        text = TextStream(loaded.tokenizer)
        shape, device = engine.shape, self.prompt.inputs["input_ids"].device
        recorder = Recorder(self.prompt.geometry, self.prompt.length, shape, request.settings.select, device)
        records: list[StepRecord] = []

        def take(session: Session, token: Tensor) -> int:
            now = time.perf_counter()
            records.append(recorder.record(session, token, text.push, now - self._started))
            self._started = time.perf_counter()
            return records[-1].token

        if self.policy.rehearses:
            engine.rehearse(
                self.prompt.inputs,
                self.policy,
                request.max_new_tokens,
                loaded.stop_ids,
                request.repetition_penalty,
            )
        self._started = time.perf_counter()
        stream = engine.stream(
            self.prompt.inputs,
            self.policy,
            request.max_new_tokens,
            loaded.stop_ids,
            request.replay,
            take,
            request.repetition_penalty,
        )
        for self.session in stream:
            record = records.pop()
            self._builder.append(record)
            yield record
            if self._stop.is_set():
                self._reason = "stopped"
                return
        last = self.session.tokens[-1] if self.session else None
        self._reason = "stop token" if last in loaded.stop_ids else "length"

    def _check_edits(self) -> None:
        """A policy that takes no decisions cannot be told to refresh, nor have its threshold changed."""
        from_drift = ("rcr", "threshold")
        for edit in self.request.edits:
            if edit.kind in ("refresh", "hold") and not self.policy.decides:
                raise SettingsError(
                    f"{self.policy.title} takes no refresh decisions, so none can be forced or held"
                )
            if edit.kind in ("tau", "rho") and self.policy.name not in from_drift:
                raise SettingsError(
                    f"{self.policy.title} has no {edit.kind}", "only RCR and Fixed threshold have one"
                )

    def _meta(self) -> TraceMeta:
        engine, loaded, prompt, settings = (
            self.captioner.engine,
            self.captioner.loaded,
            self.prompt,
            self.request.settings,
        )
        shape = engine.shape
        window = min(settings.window, prompt.length)
        managed = engine.managed_layers(prompt.length + self.request.max_new_tokens)
        return TraceMeta(
            model=loaded.name,
            family=loaded.family,
            processor=type(loaded.processor).__name__,
            prompt=prompt.prompt,
            prompt_pieces=prompt.pieces,
            policy=self.policy.name,
            settings={**settings.to_dict(), **self.request.limits()},
            edits=tuple(edit.to_dict() for edit in self.request.edits),
            image_size=prompt.geometry.size,
            prompt_length=prompt.length,
            prefix_length=prompt.length - window,
            window=window,
            layers=shape.layers,
            kv_heads=shape.kv_heads,
            query_groups=shape.query_groups,
            head_dim=shape.head_dim,
            select=settings.select,
            managed=managed,
            notes=(*loaded.notes, *_passed_through(managed)),
            versions=_versions(),
        )


def _passed_through(managed: tuple[bool, ...]) -> tuple[str, ...]:
    count = len(managed) - sum(managed)
    if not count:
        return ()
    which = "every layer" if count == len(managed) else f"{count} of {len(managed)} layers"
    return (f"{which} attends within a sliding window and is passed through: no policy selects there",)


def _versions() -> dict[str, str]:
    packages = ("torch", "transformers", "numpy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
