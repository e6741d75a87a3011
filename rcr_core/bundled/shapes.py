"""How one object of a scene looks: silhouettes, fills, colours. Pure drawing, no layout."""

from __future__ import annotations

from functools import lru_cache
from math import cos, pi, sin

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageOps

COLOURS = {
    "red": (214, 40, 40),
    "orange": (244, 134, 24),
    "yellow": (240, 205, 20),
    "green": (46, 150, 62),
    "teal": (30, 178, 178),
    "blue": (44, 84, 210),
    "purple": (128, 52, 170),
    "pink": (245, 130, 190),
    "brown": (125, 76, 38),
    "black": (28, 28, 30),
}
SHAPES = ("circle", "square", "triangle", "diamond", "star", "cross", "heart", "moon", "arrow", "hourglass")
FILLS = ("solid", "striped", "hollow")
SIZES = {"small": (28, 34), "large": (50, 56)}  # diameter in pixels, both ends included
BACKGROUNDS = {
    "white": (252, 252, 252),
    "grey": (222, 224, 226),
    "cream": (250, 241, 214),
    "mint": (216, 242, 226),
    "sky": (214, 232, 250),
}
_OVERSAMPLE = 4


@lru_cache(maxsize=4096)
def mask(shape: str, fill: str, diameter: int) -> np.ndarray:
    """Coverage of an object: float32 [diameter, diameter] in [0, 1], anti-aliased."""
    side = diameter * _OVERSAMPLE
    image = Image.new("L", (side, side), 0)
    _silhouette(ImageDraw.Draw(image), shape, side)
    if fill == "hollow":
        pixels = 3 if diameter < 40 else 5
        wall = _OVERSAMPLE * pixels
        inner = ImageOps.expand(image, border=wall)  # the filter erodes nothing at the edge of a picture
        for _ in range(pixels):  # several small filters equal a large one, and are far faster
            inner = inner.filter(ImageFilter.MinFilter(2 * _OVERSAMPLE + 1))
        inner = inner.crop((wall, wall, wall + side, wall + side))
        image = Image.fromarray(np.asarray(image) - np.asarray(inner))
    elif fill == "striped":
        period = _OVERSAMPLE * (8 if diameter < 40 else 12)
        stripes = (np.add.outer(np.arange(side), np.arange(side)) % period) < 0.6 * period
        image = Image.fromarray(np.asarray(image) * stripes.astype(np.uint8))
    small = image.resize((diameter, diameter), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32) / 255.0


def _silhouette(draw: ImageDraw.ImageDraw, shape: str, side: int) -> None:
    if shape == "circle":
        draw.ellipse((0, 0, side - 1, side - 1), fill=255)
    elif shape == "moon":
        draw.ellipse((0, 0, side - 1, side - 1), fill=255)
        draw.ellipse((side * 0.36, -side * 0.12, side * 1.28, side * 0.80), fill=0)
    elif shape == "heart":
        draw.ellipse((0, side * 0.04, side * 0.54, side * 0.58), fill=255)
        draw.ellipse((side * 0.46, side * 0.04, side - 1, side * 0.58), fill=255)
        draw.polygon([(side * x, side * y) for x, y in ((0.04, 0.43), (0.96, 0.43), (0.5, 0.98))], fill=255)
    else:
        draw.polygon([(side * x, side * y) for x, y in _POLYGONS[shape]], fill=255)


def _star() -> tuple[tuple[float, float], ...]:
    corners = []
    for k in range(10):
        radius = 0.54 if k % 2 == 0 else 0.23
        corners.append((0.5 + radius * sin(pi * k / 5), 0.53 - radius * cos(pi * k / 5)))
    return tuple(corners)


_POLYGONS = {
    "square": ((0.06, 0.06), (0.94, 0.06), (0.94, 0.94), (0.06, 0.94)),
    "triangle": ((0.5, 0.02), (1.0, 0.95), (0.0, 0.95)),
    "diamond": ((0.5, 0.0), (0.88, 0.5), (0.5, 1.0), (0.12, 0.5)),
    "star": _star(),
    "cross": (
        *((0.32, 0.0), (0.68, 0.0), (0.68, 0.32), (1.0, 0.32), (1.0, 0.68), (0.68, 0.68)),
        *((0.68, 1.0), (0.32, 1.0), (0.32, 0.68), (0.0, 0.68), (0.0, 0.32), (0.32, 0.32)),
    ),
    "arrow": ((0.0, 0.3), (0.5, 0.3), (0.5, 0.02), (1.0, 0.5), (0.5, 0.98), (0.5, 0.7), (0.0, 0.7)),
    "hourglass": ((0.04, 0.0), (0.96, 0.0), (0.6, 0.5), (0.96, 1.0), (0.04, 1.0), (0.4, 0.5)),
}
