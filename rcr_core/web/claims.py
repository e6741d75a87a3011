"""What an opened file says about its picture is believed only as far as the picture itself bears it out."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from rcr_core.bundled.scenes import CELL, Scene
from rcr_core.runs.truth import scene_of
from rcr_core.trace import Trace


def shown_scene(trace: Trace) -> Scene | None:
    """The bundled scene that a trace claims to show, if its picture is that scene's, pixel for pixel."""
    scene = scene_of(trace.meta)
    if scene is None:
        return None
    pixels = _pixels(trace.image, scene.grid * CELL)
    return scene if pixels is not None and np.array_equal(pixels, scene.pixels()) else None


def _pixels(png: np.ndarray, side: int) -> np.ndarray | None:
    """The pixels of a PNG of `side` x `side` pixels, as they are stored; None where it is anything else."""
    try:
        with Image.open(BytesIO(png.tobytes()), formats=["PNG"]) as image:
            # Before a pixel is decoded: a small file can hold a huge picture.
            return np.asarray(image) if image.size == (side, side) else None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None  # Pillow's ways to say that a PNG is broken
