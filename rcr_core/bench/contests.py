"""What the contestants decode: the bundled captioner on a scene, or a random model on random tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast

from rcr_core.bundled.captioner import MODEL_FOLDER, build_config, build_tokenizer
from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.models import load_model, prepare
from rcr_core.trace import VisualGeometry

MOST_PATCHES = 2880  # of a large image; a trace records maps over them
BEYOND = 32  # prompt tokens after the prefix: the window of the paper


@dataclass(frozen=True, eq=False)
class Contest:
    """A model, its tokenizer and a prompt; `geometry` is where its visual tokens lie."""

    title: str
    model: Any
    tokenizer: Any
    inputs: dict[str, Tensor]
    geometry: VisualGeometry

    @property
    def length(self) -> int:
        return self.inputs["input_ids"].shape[1]

    @property
    def device(self) -> torch.device:
        return self.inputs["input_ids"].device


@dataclass(frozen=True)
class Build:
    """Sizes and dtype of a random text model."""

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype

    @property
    def title(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        heads = f"{self.heads}/{self.kv_heads} heads of {self.head_dim}"
        return f"random model of {self.layers} layers, {self.hidden} wide, {heads}, {kind}"


SMALL = Build("random", 8, 256, 608, 8, 2, 64, torch.float32)
SEVEN_B = Build(
    "7B", 28, 3584, 18944, 28, 4, 128, torch.bfloat16
)  # the text model of a Qwen2-VL-7B, few words


def random_model(build: Build, device: str | torch.device, seed: int = 0) -> tuple[Any, Any]:
    """A model with random weights and its tokenizer. The weights are made in place, in their own dtype."""
    tokenizer = _tokenizer()
    config = build_config(tokenizer)
    text = config.text_config
    text.num_hidden_layers, text.hidden_size, text.intermediate_size = (
        build.layers,
        build.hidden,
        build.intermediate,
    )
    text.num_attention_heads, text.num_key_value_heads = build.heads, build.kv_heads
    text.head_dim, text.initializer_range = build.head_dim, 0.02
    text.rope_parameters = {**text.rope_parameters, "mrope_section": _rope_sections(build.head_dim // 2)}
    text.max_position_embeddings = 1 << 20
    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModelForImageTextToText.from_config(config, dtype=build.dtype)
    return model.eval(), tokenizer


@cache
def _tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer()


def _rope_sections(pairs: int) -> list[int]:
    """Rotary pairs of time, height and width."""
    return [pairs - 2 * (5 * pairs // 16), 5 * pairs // 16, 5 * pairs // 16]


def random_prompt(title: str, model: Any, tokenizer: Any, prefix: int, seed: int = 0) -> Contest:
    """A contest on a model: `prefix` + 32 random tokens, the first of them taken for patches."""
    generator = torch.Generator().manual_seed(seed)
    words = model.config.get_text_config().vocab_size
    ids = torch.randint(20, words, (1, prefix + BEYOND), generator=generator)
    count = min(prefix, MOST_PATCHES)
    zeros = np.zeros(count, np.int32)
    box = np.tile(np.float32([0.0, 0.0, 1.0, 1.0]), (count, 1))
    geometry = VisualGeometry(np.arange(count, dtype=np.int32), zeros, zeros, zeros, box, ((64, 64),))
    return Contest(
        f"{title}, prefix {prefix}", model, tokenizer, {"input_ids": ids.to(model.device)}, geometry
    )


def random_contest(prefix: int, device: str = "cpu", layers: int = 8, seed: int = 0) -> Contest:
    """The small random model, 256 wide, 8 query and 2 KV heads, in float32, and a prompt for it."""
    build = replace(SMALL, layers=layers)
    return random_prompt(build.title, *random_model(build, device, seed), prefix, seed)


def bundled_contest(device: str | torch.device) -> Contest:
    """The captioner that ships, on a drawn scene of 14 objects."""
    loaded = load_model(MODEL_FOLDER, device=str(device), dtype="float32")
    prepared = prepare(loaded, [make_scene(9008, count=14).image()], CAPTION_PROMPT)
    title = f"bundled captioner, prompt of {prepared.length} tokens"
    return Contest(
        title, loaded.model, loaded.tokenizer, prepared.inputs_on(loaded.device), prepared.geometry
    )


class Contests:
    """The contests of one device; a model is built once, when it is first asked for."""

    def __init__(self, device: torch.device, build: Build):
        self.device = device
        self.build = build

    @cached_property
    def bundled(self) -> Contest:
        return bundled_contest(self.device)

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        return random_model(self.build, self.device)

    @cached_property
    def _small(self) -> tuple[Any, Any]:
        return self._model if self.build.dtype == SMALL.dtype else random_model(SMALL, self.device)

    def exact(self, prefix: int) -> Contest:
        """A random model in float32, where nothing that differs can be laid to rounding."""
        build = self.build if self.build.dtype == SMALL.dtype else SMALL
        return random_prompt(build.title, *self._small, prefix)

    def random(self, prefix: int) -> Contest:
        """The random model of this device, with a prefix of that many tokens."""
        return random_prompt(self.build.title, *self._model, prefix)
