"""From images and a prompt to the inputs of one forward pass, and to what each prompt token stands for."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokenizers.decoders import DecodeStream

from rcr_core.errors import ImageError, PromptError
from rcr_core.models.encoding import Measure, encode, measured
from rcr_core.models.geometry import shown_sizes, visual_geometry
from rcr_core.models.limits import PromptLimits, bounded, pixels_that_fit
from rcr_core.models.loading import LoadedModel
from rcr_core.models.processor import placeholders
from rcr_core.trace import MAX_IMAGES, PromptPiece, VisualGeometry

SHOWN_PIXELS = 2_000_000  # of one picture
ALL_SHOWN_PIXELS = 6_000_000  # of all pictures of a prompt
NO_LIMITS = PromptLimits()


@dataclass(frozen=True, eq=False)
class PreparedPrompt:
    """One prompt, ready for `model.forward`, and what people need to see of it."""

    inputs: dict[str, torch.Tensor]  # in host memory, batch 1, unpadded and so without attention_mask
    length: int  # T
    geometry: VisualGeometry
    pieces: tuple[PromptPiece, ...]  # tile [0, T) in order
    pictures: tuple[bytes, ...]  # each image as a PNG file, at the size that the model saw
    prompt: str

    def inputs_on(self, device: torch.device) -> dict[str, torch.Tensor]:
        """The inputs for a prefill. Not to be held: pixels may be a third of what the prompt's K/V are."""
        return {key: value.to(device) for key, value in self.inputs.items()}


def prepare(
    loaded: LoadedModel,
    images: list[Image.Image],
    prompt: str,
    max_new_tokens: int = 0,
    limits: PromptLimits = NO_LIMITS,
) -> PreparedPrompt:
    """Put RGB `images` and then `prompt` into the model's chat template, and process both.

    A video goes in as some of its frames, in order. Raises `ImageError` where the image processor refuses an
    image or there are more than a trace holds, and `PromptError` where the prompt is empty, writes
    placeholders itself, lacks an image that the model needs, has more tokens than `limits` allow, or leaves
    too little room for `max_new_tokens`.
    """
    _check_prompt(loaded, images, prompt)
    originals, images = images, [bounded(image, limits.max_pixels) for image in images]
    measure = measured(loaded, images, prompt)
    if limits.max_tokens is not None and measure.length > limits.max_tokens:
        raise _too_long(loaded, originals, prompt, measure, limits)
    check_length(loaded, measure.length, max_new_tokens)
    inputs = measure.inputs or encode(loaded, images, prompt)
    config, image_processor = loaded.model.config, loaded.processor.image_processor
    geometry = visual_geometry(config, inputs, tuple(image.size[::-1] for image in images), image_processor)
    pixels = min(SHOWN_PIXELS, ALL_SHOWN_PIXELS // max(len(images), 1))
    shown = zip(images, shown_sizes(config, inputs, geometry.size, pixels), strict=True)
    pictures = tuple(_png(image.resize(size[::-1], image_processor.resample)) for image, size in shown)
    return PreparedPrompt(
        inputs=inputs,
        length=inputs["input_ids"].shape[1],
        geometry=geometry,
        pieces=_pieces(loaded.tokenizer, inputs["input_ids"][0].tolist(), geometry),
        pictures=pictures,
        prompt=prompt,
    )


def check_length(loaded: LoadedModel, length: int, max_new_tokens: int) -> None:
    """Raises `PromptError` where a prompt of `length` tokens leaves too little room for the new ones."""
    if length + max_new_tokens > loaded.max_length:
        raise PromptError(
            f"{length} prompt tokens and {max_new_tokens} new ones make {length + max_new_tokens}, "
            f"more than the {loaded.max_length} that {loaded.name} can hold",
            "use fewer or smaller images, a shorter prompt, or fewer new tokens",
        )


def _too_long(
    loaded: LoadedModel, images: list[Image.Image], prompt: str, measure: Measure, limits: PromptLimits
) -> PromptError:
    """Says how many tokens there are, and the `max_pixels` that would do."""

    def tokens_at(max_pixels: int) -> int:
        return measured(loaded, [bounded(image, max_pixels) for image in images], prompt).visual

    length, tokens = measure.length, measure.visual
    room, fit = limits.max_tokens - (length - tokens), None
    if images and 0 < room < tokens:
        pixels = max(math.prod(bounded(image, limits.max_pixels).size) for image in images)
        fit = pixels_that_fit(tokens_at, pixels, tokens, room)
    what = "the picture makes" if len(images) == 1 else f"{len(images)} pictures make"
    return PromptError(
        f"{what} {tokens:,} tokens of a prompt of {length:,}, the limit is {limits.max_tokens:,}",
        "use fewer pictures or a shorter prompt" if fit is None else f"set max_pixels to {fit:,} or less",
    )


def _check_prompt(loaded: LoadedModel, images: list[Image.Image], prompt: str) -> None:
    if len(images) > MAX_IMAGES:
        raise ImageError(f"{len(images)} images are too many, a trace holds {MAX_IMAGES}", "send fewer")
    if not images and not prompt.strip():
        raise PromptError("the prompt is empty", "write a question, or add an image")
    reserved = placeholders(loaded.model.config, loaded.processor)
    typed = sorted(token for token in reserved if token in prompt)
    if typed:
        raise PromptError(
            f"the prompt contains {typed[0]}, which stands for an image",
            "remove it; images are placed by themselves",
        )


def _pieces(tokenizer: Any, ids: list[int], geometry: VisualGeometry) -> tuple[PromptPiece, ...]:
    """One piece a text token (or the few tokens of one character), one a run of placeholders of an image."""
    shows = np.full(len(ids), -1)
    shows[geometry.position] = geometry.image
    stream = DecodeStream(skip_special_tokens=False)
    pieces: list[PromptPiece] = []
    for image, run in groupby(range(len(ids)), key=lambda index: shows[index]):
        run = list(run)
        if image >= 0:
            pieces.append(
                PromptPiece(tokenizer.convert_ids_to_tokens(ids[run[0]]), run[0], len(run), "image")
            )
            continue
        start = run[0]
        for index in run:
            text = stream.step(tokenizer.backend_tokenizer, ids[index])
            if text is None and index == run[-1]:  # bytes that never become a character
                text = tokenizer.decode(ids[start : index + 1])
            if text is not None:
                pieces.append(PromptPiece(text, start, index + 1 - start, "text"))
                start = index + 1
    return tuple(pieces)


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
