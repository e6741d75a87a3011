"""Idefics3's and SmolVLM's layout: rows of tiles, each announced by a tag of its own, then the whole image.

The image is stretched until it is cut into square tiles without a rest, so that a tile shows an equal part of
it. How many rows and columns there are stands only in the prompt: before the tokens of every tile there is a
mark and a tag that names its row and column, a new row begins after a line break, and the tag of the whole
view ends an image. An image that fits one tile has the whole view only.
"""

from __future__ import annotations

import numpy as np

from rcr_core.models.layouts.boxes import tile_boxes, view_boxes
from rcr_core.models.layouts.layout import ImageTokens, Layout, VisualPrompt

_MARK_AND_TAG = 2  # tokens between two tiles of one row
_NONE = np.empty((0, 4))


class SplitImage(Layout):
    """Tiles in raster order (level 1) and the whole view (level 0), the same number of tokens each."""

    def fits(self, prompt: VisualPrompt) -> bool:
        return len(prompt.views) == 5 and hasattr(prompt.config, "scale_factor")

    def tokens(self, prompt: VisualPrompt) -> list[ImageTokens]:
        _, views, _, height, width = prompt.views
        tokens = prompt.tokens_of_a_view(views)
        images = _images(prompt.ids, prompt.runs)
        even = all(len(run) == tokens for run in prompt.runs) and len(prompt.runs) == views
        if not even or len(images) != len(prompt.sizes) or height != width:
            return super().tokens(prompt)
        return [self._image(prompt, width, tokens, runs) for runs in images]

    @staticmethod
    def _image(prompt: VisualPrompt, side: int, tokens: int, runs: list[np.ndarray]) -> ImageTokens:
        *tiles, _ = runs
        rows = _rows(tiles)
        columns = len(tiles) // rows if rows else 0
        boxes = tile_boxes(prompt.config, side, tokens, len(tiles), rows, columns) if tiles else _NONE
        return ImageTokens.still((boxes, 1), (view_boxes(prompt.config, side, tokens), 0))


def _images(ids: np.ndarray, runs: list[np.ndarray]) -> list[list[np.ndarray]]:
    """The runs of each image: up to and with the one that has the same tag as the prompt's last."""
    images: list[list[np.ndarray]] = [[]]
    for run in runs:
        images[-1].append(run)
        if ids[run[0] - 1] == ids[runs[-1][0] - 1]:
            images.append([])
    return images[:-1]


def _rows(tiles: list[np.ndarray]) -> int:
    """How many rows the tiles form, by the line breaks; 0 where the rows are not of one length."""
    between = [after[0] - before[-1] - 1 for before, after in zip(tiles, tiles[1:], strict=False)]
    starts = [0, *(index for index, gap in enumerate(between, 1) if gap > _MARK_AND_TAG)]
    lengths = np.diff([*starts, len(tiles)])
    return len(starts) if tiles and len(set(lengths)) == 1 else 0
