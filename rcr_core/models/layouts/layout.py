"""What a layout is: the way in which images are spread over the visual tokens of a prompt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rcr_core.errors import PromptError
from rcr_core.models.layouts.boxes import Size


class ImageTokens(NamedTuple):
    """The n visual tokens of one image, in the order of the prompt."""

    box: np.ndarray  # [n, 4] x0, y0, x1, y1 on the image in [0, 1]; a NaN row has no area there
    level: np.ndarray  # [n] 0 = the whole view, 1 = a tile
    frame: np.ndarray  # [n]

    @classmethod
    def still(cls, *parts: tuple[np.ndarray, int]) -> ImageTokens:
        """The tokens of a still image from (boxes, level) of its views, one after the other."""
        box = np.concatenate([boxes for boxes, _ in parts])
        level = np.concatenate([np.full(len(boxes), level) for boxes, level in parts])
        return cls(box, level, np.zeros(len(box)))


@dataclass(frozen=True, eq=False)
class VisualPrompt:
    """What a layout is read from: the model's config, the processor's output for one prompt, the images.

    inputs           input_ids [1, T] and what came of the images
    sizes            (height, width) of each image
    image_processor  tells what its output does not: centre crops, and how tiles are chosen
    """

    config: Any
    inputs: dict[str, Any]
    sizes: tuple[Size, ...]
    image_processor: Any = None

    @cached_property
    def ids(self) -> np.ndarray:
        return np.asarray(self.inputs["input_ids"][0].tolist())

    @cached_property
    def position(self) -> np.ndarray:
        """Prompt indices i32 [P] of the visual tokens."""
        return np.flatnonzero(self.ids == self.config.image_token_id).astype(np.int32)

    @cached_property
    def runs(self) -> list[np.ndarray]:
        """The prompt indices of visual tokens that stand side by side, run by run."""
        breaks = np.flatnonzero(np.diff(self.position) > 1) + 1
        return np.split(self.position, breaks) if len(self.position) else []

    @property
    def views(self) -> tuple[int, ...]:
        """The shape of the pixels: [views, 3, h, w] or [1, views, 3, h, w]; empty where there are none."""
        return tuple(getattr(self.inputs.get("pixel_values"), "shape", ()))

    def tokens_of_a_view(self, views: int) -> int:
        """Raises `PromptError` where the visual tokens cannot be shared out evenly."""
        if len(self.position) % views:
            raise PromptError(
                f"the prompt holds {len(self.position)} image tokens, which {views} views cannot share",
                "the processor and the model do not belong together",
            )
        return len(self.position) // views


class Layout:
    """A layout that is not known: tokens without boxes, because no box is better than a wrong one."""

    def fits(self, prompt: VisualPrompt) -> bool:
        """Whether the prompt is laid out in this way, read off its inputs and the model's config."""
        return True

    def tokens(self, prompt: VisualPrompt) -> list[ImageTokens]:
        """The tokens of each image. Raises `PromptError` where they cannot be told apart."""
        if len(prompt.sizes) > 1:
            raise PromptError("this model's layout of several images is not known", "send one image")
        return [ImageTokens.still((np.full((len(prompt.position), 4), np.nan), 0))]

    def shown(self, prompt: VisualPrompt, index: int, pixels: int) -> Size:
        """The size to show image `index` at, in at most `pixels` pixels: its own, or in proportion to it."""
        return capped(prompt.sizes[index], pixels)


def capped(size: Size, pixels: int) -> Size:
    scale = min(1.0, math.sqrt(pixels / (size[0] * size[1])))
    return max(1, int(size[0] * scale)), max(1, int(size[1] * scale))
