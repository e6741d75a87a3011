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

from rcr_core.cost import cost
from rcr_core.edits import Edit, Gate
from rcr_core.engine import Engine, Recorder, TextStream, TokenNames, head_maps_fit, most_cells
from rcr_core.errors import EditError, SettingsError
from rcr_core.models import LoadedModel, PreparedPrompt, check_length
from rcr_core.out_of_memory import memory_guard
from rcr_core.policies import POLICIES, make_policy, unknown_policy
from rcr_core.settings import Settings
from rcr_core.trace import StepRecord, Trace, TraceBuilder, TraceMeta, VisualGeometry, with_cells

MAX_NEW_TOKENS = 4096


@dataclass(frozen=True)
class CaptionRequest:
    """What to run. `replay` dictates the first tokens: a fork replays its parent's up to its step.

    `scene` is the bundled scene that the picture shows (seed, grid, count), if any, for the trace to carry.
    """

    policy: str = "rcr"
    settings: Settings = field(default_factory=Settings)
    edits: tuple[Edit, ...] = ()
    max_new_tokens: int = 320
    replay: tuple[int, ...] = ()
    repetition_penalty: float = 1.0  # 1 is none; a checkpoint's own is reported, never applied by itself
    scene: dict[str, int] | None = None

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
    """One run. Iterate once; `trace()` is right whenever it is called, `stop()` ends the run after this step.

    Raises `PromptError` and `EditError` on construction where the run cannot do what is asked.
    """

    def __init__(self, captioner: Captioner, prompt: PreparedPrompt, request: CaptionRequest):
        self.captioner = captioner
        self.prompt = prompt
        self.request = request
        check_length(captioner.loaded, prompt.length, request.max_new_tokens)
        self._check_edits()
        self._policy = make_policy(request.policy, request.settings, Gate(request.edits), observe=True)
        shape, diagnostics = captioner.engine.shape, request.settings.diagnostics
        limit = most_cells(shape, request.max_new_tokens, diagnostics)
        self._geometry = with_cells(prompt.geometry, limit)
        self._builder = TraceBuilder(self._meta(), self._geometry, prompt.pictures)
        self._stop = threading.Event()
        self._reason = ""

    @property
    def rehearses(self) -> bool:
        """Whether the first record comes only after a whole run without compression."""
        return POLICIES[self.request.policy].rehearses

    def stop(self) -> None:
        """End the run after the present step; what was recorded stays."""
        self._stop.set()

    def trace(self) -> Trace:
        """The trace as far as the run has come."""
        return self._builder.snapshot(stop_reason=self._reason)

    def __iter__(self) -> Iterator[StepRecord]:
        """Decode, one record per token. Errors end the run with stop reason `error` and are raised."""
        try:
            with memory_guard():
                yield from self._records()
        except (GeneratorExit, KeyboardInterrupt):
            self._reason = self._reason or "stopped"
            raise
        except BaseException:
            self._reason = "error"
            raise
        finally:
            self._policy = None  # sketches and views; the cache goes with the session

    def _records(self) -> Iterator[StepRecord]:
        engine, loaded = self.captioner.engine, self.captioner.loaded
        request, stop_ids, device = self.request, loaded.stop_ids, loaded.device
        count, penalty = request.max_new_tokens, request.repetition_penalty
        if self._policy.rehearses:
            inputs = self.prompt.inputs_on
            engine.rehearse(inputs(device), self._policy, count, stop_ids, penalty, self._stop.is_set)
        if self._stop.is_set() or not count:
            self._reason = "stopped" if count else "length"
            return
        text = TextStream(loaded.tokenizer)
        recorder = self._recorder()
        began = time.perf_counter()
        session = engine.start(self.prompt.inputs_on(device), self._policy, count, penalty)
        while True:
            token = engine.choose(session, request.replay)
            record = recorder.record(session, token, text.push, began)
            self._builder.append(record)
            if record.token in stop_ids:
                self._reason = "stop token"
            elif record.step + 1 == count:
                self._reason = "length"
            yield record
            if not self._reason and self._stop.is_set():
                self._reason = "stopped"
            if self._reason:
                return
            began = time.perf_counter()
            engine.step(session, token)

    def _recorder(self) -> Recorder:
        engine, geometry = self.captioner.engine, self._geometry
        return Recorder(
            geometry,
            self.prompt.length,
            engine.shape,
            self.request.settings.select,
            engine.device,
            heads=head_maps_fit(engine.shape, geometry.cells, self.request.max_new_tokens),
            name_of=TokenNames(self.captioner.loaded.tokenizer).of,
        )

    def _check_edits(self) -> None:
        """Edits must name what the run has, and what the policy decides."""
        request, policy = self.request, POLICIES[self.request.policy]
        window = min(request.settings.window, self.prompt.length)
        gate = Gate(request.edits)
        gate.check(self.captioner.engine.shape.layers, self.prompt.length - window, request.settings.select)
        for edit in request.edits:
            if edit.step >= max(request.max_new_tokens, 1):
                raise EditError(
                    f"step {edit.step} is beyond the {request.max_new_tokens} new tokens of the run"
                )
            if edit.kind not in policy.edits:
                known = ", ".join(policy.edits) or "none"
                raise EditError(
                    f"{policy.title} cannot follow the edit {edit.kind}", f"edits it can: {known}"
                )

    def _meta(self) -> TraceMeta:
        engine, loaded = self.captioner.engine, self.captioner.loaded
        prompt, settings = self.prompt, self.request.settings
        shape = engine.shape
        window = min(settings.window, prompt.length)
        managed = engine.managed_layers(prompt.length + self.request.max_new_tokens)
        return TraceMeta(
            model=loaded.name,
            family=loaded.family,
            processor=type(loaded.processor).__name__,
            prompt=prompt.prompt,
            prompt_pieces=prompt.pieces,
            policy=self.request.policy,
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
            dtype=loaded.dtype_name,
            device=loaded.device.type,
            scene=self.request.scene,
            notes=(
                *loaded.notes,
                *_passed_through(managed),
                *_offloaded(self.request.policy, settings, prompt.length - window, shape.head_dim),
                *_pooled(self._geometry),
            ),
            versions=_versions(),
        )


def _offloaded(policy: str, settings: Settings, prefix: int, head_dim: int) -> tuple[str, ...]:
    if settings.offload == "none" or policy == "full" or prefix <= settings.select:
        return ()
    if not cost(policy, settings, prefix, head_dim, rate=1.0).reads:
        return ("the prefix is in host memory, from which this policy reads nothing after the prefill",)
    if settings.offload == "masked":
        return (
            "the prefix is in host memory and is read in every layer: that saves device memory, not reads",
        )
    return ("the prefix is in host memory; a layer waits for the host to know what to read of it",)


def _passed_through(managed: tuple[bool, ...]) -> tuple[str, ...]:
    count = len(managed) - sum(managed)
    if not count:
        return ()
    which = "every layer is" if count == len(managed) else f"{count} of {len(managed)} layers are"
    return (f"{which} passed through: no policy selects without full attention (in a sliding window, say)",)


def _pooled(geometry: VisualGeometry) -> tuple[str, ...]:
    if geometry.cell is None:
        return ()
    patches, cells = len(geometry.position), geometry.cells
    return (
        f"the run may become so long that the maps of single layers are recorded in {cells:,} areas, means "
        f"over some of the {patches:,} visual tokens; the mean over layers and what is kept are by token",
    )


def _versions() -> dict[str, str]:
    packages = ("torch", "transformers", "numpy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
