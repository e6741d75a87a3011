"""Tiny checkpoints in hub layout, built from a seed in under a second, so that tests need no download."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.core.tiny import gemma, idefics, internvl, llava, qwen, text_only
from tests.core.tiny.parts import PATCH, SIDE, TEXT, TILE, spread

VISION_FAMILIES = ("qwen2_vl", "qwen3_vl", "llava_next")
_BUILDERS = {
    "qwen2_vl": qwen.qwen2_vl,
    "qwen2_5_vl": qwen.qwen2_5_vl,
    "qwen3_vl": qwen.qwen3_vl,
    "llava": llava.llava,
    "llava_next": llava.llava_next,
    "llava_onevision": llava.llava_onevision,
    "idefics3": idefics.idefics3,
    "smolvlm": idefics.smolvlm,
    "internvl": internvl.internvl,
    "gemma3": gemma.gemma3,
    "paligemma": gemma.paligemma,
    "text_only": text_only.text_only,
}
ALL_FAMILIES = tuple(family for family in _BUILDERS if family != "text_only")

__all__ = ["ALL_FAMILIES", "PATCH", "SIDE", "TILE", "VISION_FAMILIES", "build_tiny"]


def build_tiny(
    family: str,
    folder: Path,
    *,
    seed: int = 0,
    max_shard_size: str = "1GB",
    template: bool = True,
    **overrides,
) -> Path:
    """Write a tiny checkpoint of `family` to `folder` and return it.

    Families: `ALL_FAMILIES` and "text_only" (a Llama). 4 layers, 4 query heads, 2 KV heads, head_dim 16.
    `overrides` go to the text config; `template=False` leaves the chat template out.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, processor = _BUILDERS[family](template, {**TEXT, **overrides})
        spread(model)
    folder = Path(folder)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    processor.save_pretrained(folder)
    return folder
