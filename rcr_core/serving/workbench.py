"""What a server works with: its models and the store of its runs.

Everything that the page, a script or an agent can ask for passes here.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from PIL import Image

from rcr_core.bundled.scenes import CAPTION_PROMPT, Scene
from rcr_core.captioning import Captioner, CaptionRequest, CaptionRun
from rcr_core.errors import ImageError, PromptError
from rcr_core.models import PreparedPrompt, PromptLimits, prepare
from rcr_core.runs import LiveRun, RunStore
from rcr_core.runs.truth import scene_facts
from rcr_core.serving.models import Models, is_bundled
from rcr_core.serving.presets import BUNDLED, PAPER

MAX_PROMPT = 20_000  # characters
MAX_PROMPT_TOKENS = 16_384
MAX_PICTURES = 16  # in one prompt
PROMPT = "Describe this image in detail."
FIRST_PROMPTS = (PROMPT, CAPTION_PROMPT)


def first_prompt(source: str) -> str:
    """The prompt that a person begins with on a model."""
    return CAPTION_PROMPT if is_bundled(source) else PROMPT


def first_preset(source: str) -> str:
    """The preset that a person begins with on a model. At the paper's, the small one only fails."""
    return BUNDLED if is_bundled(source) else PAPER


@dataclass(frozen=True)
class Question:
    """What is asked of the model: a picture and a prompt, and the scene that the picture shows, if any.

    `more` are the pictures after the first, in the order in which the prompt has them.
    """

    image: Image.Image
    prompt: str
    scene: Scene | None = None
    label: str = "picture"
    more: tuple[Image.Image, ...] = ()
    max_pixels: int | None = None  # of each picture, see `PromptLimits`

    def __post_init__(self):
        PromptLimits(self.max_pixels)
        if len(self.images) > MAX_PICTURES:
            raise ImageError(
                f"{len(self.images)} pictures are too many, the limit is {MAX_PICTURES}", "remove some"
            )
        if not self.prompt.strip():
            raise PromptError("the prompt is empty", "write what the model is to do with the picture")
        if len(self.prompt) > MAX_PROMPT:
            raise PromptError(
                f"the prompt has {len(self.prompt):,} characters, the limit is {MAX_PROMPT:,}", "shorten it"
            )

    @property
    def images(self) -> list[Image.Image]:
        """Every picture, in the order in which the prompt has them."""
        return [self.image, *self.more]


@dataclass
class Workbench:
    """A server's models and the runs on them; a run that starts before its model is there waits for it."""

    models: Models = field(default_factory=Models)
    store: RunStore = field(default_factory=RunStore)
    max_prompt_tokens: int = MAX_PROMPT_TOKENS
    # A run that is being started counts as one that goes on: it gets the model that its owner saw.
    _starting: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def bundled(self) -> bool:
        """Whether the chosen model is the captioner that ships."""
        return is_bundled(self.models.chosen)

    @property
    def prompt(self) -> str:
        """The prompt that a person begins with."""
        return first_prompt(self.models.chosen)

    @property
    def preset(self) -> str:
        """The preset that a person begins with."""
        return first_preset(self.models.chosen)

    def load(self) -> None:
        """Begin to load the chosen model; returns at once."""
        self.models.load()

    def captioner(self, timeout: float | None = None) -> Captioner:
        """The model, ready for runs; waits for it. Raises `LoadError` where it cannot be loaded."""
        return self.models.captioner(timeout)

    def choose(self, name: str) -> None:
        """Switch to another of the server's models. Raises `BusyError`, see `Models.choose`."""
        with self._starting:
            metrics = self.store.metrics()
            self.models.choose(name, metrics["queued"] + metrics["working"])

    def close(self) -> None:
        """Break off the loading of a model, and stop every run."""
        self.models.close()
        self.store.close()

    def server(self) -> dict[str, Any]:
        """Facts about this server, for people and scripts."""
        state = self.models.state()
        facts = {"model": state.name, "models": list(self.models.names), "store": self.store.metrics()}
        if state.error is not None:
            return facts | {"state": "failed", "error": state.error.message, "hint": state.error.hint}
        if state.captioner is None:
            return facts | {"state": "loading", "progress": vars(state.progress), "seconds": state.seconds}
        loaded, shape = state.captioner.loaded, state.captioner.engine.shape
        return facts | {
            "state": "ready",
            "device": loaded.device.type,
            "dtype": loaded.dtype_name,
            "layers": shape.layers,
            "kv_heads": shape.kv_heads,
        }

    def prepare(self, question: Question, max_new_tokens: int = 0) -> PreparedPrompt:
        """What the model makes of the pictures and a prompt. Raises `ImageError` and `PromptError`."""
        limits = PromptLimits(question.max_pixels, self.max_prompt_tokens)
        return prepare(self.captioner().loaded, question.images, question.prompt, max_new_tokens, limits)

    def start(self, owner: str, question: Question, request: CaptionRequest) -> LiveRun:
        """Start a run; returns at once. Raises `StoreFullError`."""

        facts = scene_facts(question.scene) if question.scene else None
        request = replace(request, scene=facts)

        def make() -> CaptionRun:
            captioner = self.captioner()
            return captioner.run(self.prepare(question, request.max_new_tokens), request)

        with self._starting:
            return self.store.start(
                owner,
                make,
                policy=request.policy,
                label=question.label,
                scene=question.scene,
            )
