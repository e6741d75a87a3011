"""What the engine's tests share: loaded tiny models, a picture, prompts, and plain runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from PIL import Image

from rcr_core.captioning import Captioner
from rcr_core.engine import Engine
from rcr_core.models import LoadedModel, PreparedPrompt, prepare
from rcr_core.policies import Policy

FAMILIES = ("qwen2_vl", "qwen3_vl", "llava_next")
TEXT = "Describe this image in detail. What is in the picture?"


def picture(seed: int = 0, size: tuple[int, int] = (96, 128)) -> Image.Image:
    """A picture of random coloured blocks, (height, width) pixels."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (size[0] // 8, size[1] // 8, 3), dtype=np.uint8)
    return Image.fromarray(small.repeat(8, 0).repeat(8, 1))


def prompt_for(loaded: LoadedModel, text: str = TEXT, seed: int = 0) -> PreparedPrompt:
    return prepare(loaded, [picture(seed)], text)


def endless(loaded: LoadedModel) -> Captioner:
    """A captioner that no token stops: tiny random models say a stop token early."""
    return Captioner(replace(loaded, stop_ids=frozenset()))


def tokens_of(engine: Engine, inputs: dict, policy: Policy, count: int) -> list[int]:
    """Tokens of a run without stop ids."""
    sessions = list(engine.stream(inputs, policy, count))
    return sessions[-1].tokens if sessions else []


def generated(model, inputs: dict, count: int) -> tuple[list[int], torch.Tensor]:
    """Tokens and logits [count, V] of stock greedy `generate`, no penalty, no stop."""
    out = model.generate(
        **inputs,
        attention_mask=torch.ones_like(inputs["input_ids"]),
        do_sample=False,
        repetition_penalty=1.0,
        max_new_tokens=count,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    tokens = out.sequences[0, inputs["input_ids"].shape[1] :].tolist()
    return tokens, torch.cat(out.logits).float()
