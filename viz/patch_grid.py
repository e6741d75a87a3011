"""The picture as the model sees it, with the rectangles of its visual tokens drawn on it."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image, ImageDraw

_LINES = ((255, 255, 255, 150), (0, 0, 0, 110))  # a light and a dark one, so that they show on any picture
_LONGEST = 560  # pixels


def patch_grid(image_png: bytes, box: np.ndarray, level: np.ndarray) -> bytes:
    """A PNG of the processed picture under the grid of its visual tokens.

    box f32 [P, 4] in [0, 1], a NaN row has no area; of a tiled picture (level 1) the tiles' tokens are drawn.
    """
    image = Image.open(io.BytesIO(image_png)).convert("RGB")
    scale = _LONGEST / max(image.size)
    image = image.resize([max(round(side * scale), 1) for side in image.size])
    draw = ImageDraw.Draw(image, "RGBA")
    finest = level == level.max() if len(level) else level
    for x0, y0, x1, y1 in box[finest & ~np.isnan(box).any(axis=1)]:
        corners = (x0 * image.width, y0 * image.height, x1 * image.width, y1 * image.height)
        draw.rectangle(corners, outline=_LINES[0])
        draw.rectangle([edge + 1 for edge in corners], outline=_LINES[1])
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def as_data_address(png: bytes) -> str:
    """A PNG as an address that an `img` element shows without a request."""
    return "data:image/png;base64," + base64.b64encode(png).decode()
