"""Which visual token shows which part of which image.

The layout is read off the inputs that the processor made and off the config, never off a model's name. A
layout that is not known yields tokens without boxes, because no box is better than a wrong one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rcr_core.errors import PromptError
from rcr_core.models.layouts import Size, VisualPrompt, layout_of
from rcr_core.trace import VisualGeometry

_EMPTY = (np.empty((0, 4)), np.empty(0), np.empty(0))  # boxes, levels, frames of a prompt without images


def visual_geometry(
    config: Any, inputs: dict[str, Any], sizes: tuple[Size, ...], image_processor: Any = None
) -> VisualGeometry:
    """The geometry of the visual tokens of a prompt.

    `config` is the model's, `inputs` the processor's output for one prompt (input_ids [1, T] and what came of
    the images), `sizes` the (height, width) of the images. `image_processor` tells what its output does not:
    whether a square view shows only a crop, and how tiles are chosen.

    Raises `PromptError` where the prompt holds another number of visual tokens than its images need, or where
    it cannot be told which of several images a token shows.
    """
    prompt = VisualPrompt(config, inputs, tuple(sizes), image_processor)
    images = layout_of(prompt).tokens(prompt) if sizes else []
    counts = [len(image.box) for image in images]
    position = prompt.position
    if sum(counts) != len(position):
        raise PromptError(
            f"the prompt holds {len(position)} image tokens, its images need {sum(counts)}",
            "the processor and the model do not belong together",
        )
    box, level, frame = (np.concatenate(parts) for parts in zip(_EMPTY, *images, strict=True))
    return VisualGeometry(
        position=position,
        image=np.repeat(np.arange(len(sizes), dtype=np.int32), counts),
        frame=frame.astype(np.int32),
        level=level.astype(np.int32),
        box=box.astype(np.float32),
        size=tuple(sizes),
    )


def shown_sizes(
    config: Any, inputs: dict[str, Any], sizes: tuple[Size, ...], pixels: int
) -> tuple[Size, ...]:
    """The size to show each image at, in at most `pixels` pixels.

    Where the model saw it in its own proportions, as it saw it: on a grid of patches every token stays a
    whole number of pixels wide and high. Where it was squeezed into squares, in its own size.
    """
    prompt = VisualPrompt(config, inputs, tuple(sizes))
    return tuple(layout_of(prompt).shown(prompt, index, pixels) for index in range(len(sizes)))
