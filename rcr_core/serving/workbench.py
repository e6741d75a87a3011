"""What a server works with: its model, loaded in the background, and the store of its runs.

Everything that the page, a script or an agent can ask for passes here.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from PIL import Image

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.bundled.scenes import CAPTION_PROMPT, Scene
from rcr_core.captioning import Captioner, CaptionRequest, CaptionRun
from rcr_core.errors import PromptError, ScopeError
from rcr_core.models import PreparedPrompt, load_model, prepare
from rcr_core.runs import LiveRun, RunStore
from rcr_core.runs.truth import scene_facts
from rcr_core.serving.presets import BUNDLED, PAPER

MAX_PROMPT = 20_000  # characters
PROMPT = "Describe this image in detail."


@dataclass(frozen=True)
class Question:
    """What is asked of the model: a picture and a prompt, and the scene that the picture shows, if any."""

    image: Image.Image
    prompt: str
    scene: Scene | None = None
    label: str = "picture"

    def __post_init__(self):
        if not self.prompt.strip():
            raise PromptError("the prompt is empty", "write what the model is to do with the picture")
        if len(self.prompt) > MAX_PROMPT:
            raise PromptError(
                f"the prompt has {len(self.prompt):,} characters, the limit is {MAX_PROMPT:,}", "shorten it"
            )


@dataclass
class Workbench:
    """One model and the runs on it. `load` returns at once; a run that starts before waits for the model."""

    model: str = str(MODEL_FOLDER)
    device: str = "auto"
    dtype: str = "auto"
    store: RunStore = field(default_factory=RunStore)

    def __post_init__(self):
        self._loaded: Future[Captioner] = Future()

    @property
    def bundled(self) -> bool:
        return Path(self.model).resolve() == MODEL_FOLDER.resolve()

    @property
    def name(self) -> str:
        return Path(self.model).name

    @property
    def prompt(self) -> str:
        """The prompt that a person begins with."""
        return CAPTION_PROMPT if self.bundled else PROMPT

    @property
    def preset(self) -> str:
        """The preset that a person begins with. At the paper's, the small model only fails."""
        return BUNDLED if self.bundled else PAPER

    def load(self) -> None:
        """Begin to load the model, in a thread of its own."""
        threading.Thread(target=self._load, name="rcr model", daemon=True).start()

    def captioner(self, timeout: float | None = None) -> Captioner:
        """The model, ready for runs; waits for it. Raises `LoadError` where it cannot be loaded."""
        return self._loaded.result(timeout)

    def server(self) -> dict[str, Any]:
        """Facts about this server, for people and scripts."""
        facts: dict[str, Any] = {"model": self.name, "state": "loading", "store": self.store.metrics()}
        if not self._loaded.done():
            return facts
        if (error := self._loaded.exception()) is not None:
            return facts | {"state": "failed", "error": str(error)}
        loaded = self.captioner().loaded
        return facts | {
            "state": "ready",
            "device": loaded.device.type,
            "dtype": loaded.dtype_name,
            "layers": self.captioner().engine.shape.layers,
            "kv_heads": self.captioner().engine.shape.kv_heads,
        }

    def prepare(self, question: Question) -> PreparedPrompt:
        """What the model makes of a picture and a prompt. Raises `ImageError` and `PromptError`."""
        return prepare(self.captioner().loaded, [question.image], question.prompt)

    def start(self, owner: str, question: Question, request: CaptionRequest) -> LiveRun:
        """Start a run; returns at once. Raises `StoreFullError`."""

        facts = scene_facts(question.scene) if question.scene else None
        request = replace(request, scene=facts)

        def make() -> CaptionRun:
            captioner = self.captioner()
            prompt = prepare(captioner.loaded, [question.image], question.prompt, request.max_new_tokens)
            return captioner.run(prompt, request)

        return self.store.start(
            owner,
            make,
            policy=request.policy,
            label=question.label,
            scene=question.scene,
        )

    def _load(self) -> None:
        try:
            self._loaded.set_result(Captioner(load_model(self.model, self.device, self.dtype)))
        except ScopeError as error:
            self._loaded.set_exception(error)
        except BaseException as error:
            wrapped = ScopeError(f"the model cannot be loaded: {type(error).__name__}: {error}")
            self._loaded.set_exception(wrapped)
            raise
