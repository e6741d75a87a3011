"""What a person or a server allows of a prompt: pixels of a picture, and tokens."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image

from rcr_core.errors import ImageError, SettingsError

FEWEST_PIXELS = 1024  # 32 x 32; a processor may want more
_TRIES = 6


@dataclass(frozen=True)
class PromptLimits:
    """Limits of a prompt; None is none.

    max_pixels: of each picture; a larger one is scaled down in proportion before the processor sees it
    max_tokens: of the whole prompt; a longer one is refused

    Raises `SettingsError`.
    """

    max_pixels: int | None = None
    max_tokens: int | None = None

    def __post_init__(self):
        if self.max_pixels is not None and self.max_pixels < FEWEST_PIXELS:
            raise SettingsError(f"max_pixels must be {FEWEST_PIXELS:,} or more, got {self.max_pixels:,}")


def bounded(image: Image.Image, max_pixels: int | None) -> Image.Image:
    """The image, scaled down in proportion where it has more pixels."""
    width, height = image.size
    if max_pixels is None or width * height <= max_pixels:
        return image
    scale = math.sqrt(max_pixels / (width * height))
    size = max(1, int(width * scale)), max(1, int(height * scale))
    return image.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)


def pixels_that_fit(tokens_at: Callable[[int], int], pixels: int, tokens: int, room: int) -> int | None:
    """A `max_pixels` at which the pictures of a prompt take at most `room` tokens, tried out, or None.

    tokens_at: their tokens at a `max_pixels`; at `pixels`, those of the largest picture, they are `tokens`.
    """
    for _ in range(_TRIES):
        pixels = _two_digits(pixels * min(room / tokens, 0.95))
        if pixels < FEWEST_PIXELS:
            return None
        try:
            tokens = tokens_at(pixels)
        except ImageError:  # too small for the processor
            return None
        if tokens <= room:
            return pixels
    return None


def _two_digits(number: float) -> int:
    """A number that is easy to type: rounded down to two digits and zeros."""
    unit = 10 ** max(len(str(int(number))) - 2, 0)
    return int(number) // unit * unit
