"""LLaVA-NeXT's anyres arithmetic: which part of the picture each visual token of one image covers.

The image is seen twice. First whole, stretched to one square tile. Then fitted, in its own proportions, into
the best of a few resolutions, centred on black and cut into tiles; rows and columns of tokens that lie in the
black are dropped again, and each row ends with a newline token that shows nothing.
"""

from __future__ import annotations

import math

import numpy as np
from transformers.image_processing_utils import select_best_resolution

Size = tuple[int, int]  # (height, width)


def fit(size: Size, pinpoints: list[list[int]]) -> tuple[Size, Size]:
    """The canvas chosen for an image of `size`, and the size of the picture on it, in pixels."""
    canvas = tuple(select_best_resolution(size, pinpoints))
    by_height, by_width = canvas[0] / size[0], canvas[1] / size[1]
    if by_width < by_height:
        return canvas, (min(math.ceil(size[0] * by_width), canvas[0]), canvas[1])
    return canvas, (canvas[0], min(math.ceil(size[1] * by_height), canvas[1]))


def anyres_boxes(
    size: Size, pinpoints: list[list[int]], tile: int, patch: int
) -> tuple[np.ndarray, np.ndarray]:
    """Boxes f64 [n, 4] (x0, y0, x1, y1 on the image in [0, 1], NaN = no area) and levels [n] of its tokens.

    `tile` is the side of a tile and `patch` that of a token, in pixels.
    """
    side = tile // patch
    whole = _spans(np.arange(side), side, tile, patch) / tile
    base = grid_boxes(whole, whole)
    canvas, picture = fit(size, pinpoints)
    grid = (canvas[0] // tile * side, canvas[1] // tile * side)
    spans = []
    for axis, dropped in enumerate(_dropped(size, grid)):
        kept = np.arange(dropped, grid[axis] - dropped)
        black = (canvas[axis] - picture[axis]) // 2  # pixels before the picture begins
        spans.append(((_spans(kept, side, tile, patch) - black) / picture[axis]).clip(0, 1))
    tiles = grid_boxes(*spans).reshape(len(spans[0]), len(spans[1]), 4)
    tiles[(tiles[..., 0] >= tiles[..., 2]) | (tiles[..., 1] >= tiles[..., 3])] = np.nan  # all black
    newlines = np.full((len(tiles), 1, 4), np.nan)
    tiles = np.concatenate([tiles, newlines], axis=1).reshape(-1, 4)
    return np.concatenate([base, tiles]), np.repeat([0, 1], [len(base), len(tiles)])


def grid_boxes(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Boxes [r * c, 4] in raster order from the row spans [r, 2] and the column spans [c, 2]."""
    y = np.repeat(rows, len(columns), axis=0)
    x = np.tile(columns, (len(rows), 1))
    return np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1)


def _spans(index: np.ndarray, side: int, tile: int, patch: int) -> np.ndarray:
    """Pixels [low, high) that tokens cover along one axis; what patches leave of a tile is unseen."""
    low = index // side * tile + index % side * patch
    return np.stack([low, low + patch], axis=1)


def _dropped(size: Size, grid: Size) -> tuple[int, int]:
    """Rows and columns of tokens dropped at either end, rounded as `unpad_image` of transformers does."""
    if size[1] / size[0] > grid[1] / grid[0]:
        return (grid[0] - int(round(size[0] * (grid[1] / size[1]), 7))) // 2, 0
    return 0, (grid[1] - int(round(size[1] * (grid[0] / size[0]), 7))) // 2
