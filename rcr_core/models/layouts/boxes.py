"""Boxes of grids of tokens: x0, y0, x1, y1 on an image, in [0, 1]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Size = tuple[int, int]  # (height, width)
Extent = tuple[float, float]  # where a view begins and ends along one axis of its image, which is [0, 1]
WHOLE: Extent = (0.0, 1.0)


def grid_boxes(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Boxes [r * c, 4] in raster order from the row spans [r, 2] and the column spans [c, 2].

    What reaches outside of the image is cut off; a box without area on the image is NaN.
    """
    y = np.repeat(rows, len(columns), axis=0).clip(0, 1)
    x = np.tile(columns, (len(rows), 1)).clip(0, 1)
    box = np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1)
    box[~((box[:, 0] < box[:, 2]) & (box[:, 1] < box[:, 3]))] = np.nan
    return box


def even_spans(cells: int, extent: Extent = WHOLE, seen: float = 1.0) -> np.ndarray:
    """Spans [cells, 2] of equal cells that cover the first `seen` (a fraction) of an extent."""
    edge = extent[0] + (extent[1] - extent[0]) * seen * np.arange(cells + 1) / cells
    return np.stack([edge[:-1], edge[1:]], axis=1)


def view_boxes(
    config: Any, side: int, tokens: int, rows: Extent = WHOLE, columns: Extent = WHOLE
) -> np.ndarray:
    """Boxes [tokens, 4] of one view, a square of `side` pixels, that shows these extents of its image.

    The vision tower cuts the view into patches, and what they leave at the end is unseen; then square groups
    of patches become one token each. All NaN where the tokens are no such grid.
    """
    across = math.isqrt(tokens)
    patches = side // patch_size(config) if patch_size(config) else 0
    merged = patches // max(across, 1)
    if across**2 != tokens or not merged or patches // merged != across:
        return np.full((tokens, 4), np.nan)
    seen = across * merged * patch_size(config) / side
    return grid_boxes(even_spans(across, rows, seen), even_spans(across, columns, seen))


def tile_boxes(config: Any, side: int, tokens: int, count: int, rows: int, columns: int) -> np.ndarray:
    """Boxes [count * tokens, 4] of tiles, views of `side` pixels, that share out their image in raster order.

    All NaN where `count` tiles do not make these rows and columns.
    """
    if rows * columns != count:
        return np.full((count * tokens, 4), np.nan)
    row = [(index / rows, (index + 1) / rows) for index in range(rows)]
    column = [(index / columns, (index + 1) / columns) for index in range(columns)]
    return np.concatenate([view_boxes(config, side, tokens, y, x) for y in row for x in column])


def padded_extents(size: Size) -> tuple[Extent, Extent]:
    """The rows and columns that a square of the longer side shows, on the centre of which the image lies."""
    longer = max(size)
    lows = [-((longer - side) // 2) / side for side in size]
    rows, columns = ((low, low + longer / side) for low, side in zip(lows, size, strict=True))
    return rows, columns


def patch_size(config: Any) -> int:
    """The side of a patch of the vision tower in pixels; 0 where there is no such number."""
    size = getattr(config.vision_config, "patch_size", 0)
    if isinstance(size, (list, tuple)):
        size = size[0] if len(set(size)) == 1 else 0
    return size or 0
