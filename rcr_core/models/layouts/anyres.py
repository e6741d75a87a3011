"""LLaVA-NeXT's and LLaVA-OneVision's layout, "anyres": the whole image, then tiles of it.

The image is seen twice. First whole, stretched to one square tile. Then fitted, in its own proportions, into
the best of a few resolutions, centred on black and cut into tiles; rows and columns of tokens that lie in the
black are dropped again, and each row ends with a newline token that shows nothing. OneVision allows many more
tiles, and where they come to too many tokens it resamples their grid to a coarser one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from transformers.image_processing_utils import select_best_resolution

from rcr_core.models.layouts.boxes import Size, grid_boxes, padded_extents, patch_size, view_boxes
from rcr_core.models.layouts.layout import ImageTokens, Layout, VisualPrompt, capped

_MOST_TILES = "anyres_max_"
_TOLERATED = 1.1  # times as many tokens along a side as the most tiles have


class AnyRes(Layout):
    """Base view and tiles of each image; in OneVision, several images of one prompt are single views."""

    def fits(self, prompt: VisualPrompt) -> bool:
        mode = getattr(prompt.config, "vision_aspect_ratio", _MOST_TILES)
        sized = "image_sizes" in prompt.inputs and hasattr(prompt.config, "image_grid_pinpoints")
        return sized and mode.startswith(_MOST_TILES) and patch_size(prompt.config) > 0

    def tokens(self, prompt: VisualPrompt) -> list[ImageTokens]:
        image = _padded_view if _is_untiled(prompt) else _tiled
        return [image(prompt.config, size) for size in prompt.sizes]

    def shown(self, prompt: VisualPrompt, index: int, pixels: int) -> Size:
        """As it lies on the canvas that is cut into tiles."""
        size = prompt.sizes[index]
        fitted = size if _is_untiled(prompt) else fit(size, prompt.config.image_grid_pinpoints)[1]
        return capped(fitted, pixels)


def fit(size: Size, pinpoints: list[list[int]]) -> tuple[Size, Size]:
    """The canvas chosen for an image of `size`, and the size of the picture on it, in pixels."""
    canvas = tuple(select_best_resolution(size, pinpoints))
    by_height, by_width = canvas[0] / size[0], canvas[1] / size[1]
    if by_width < by_height:
        return canvas, (min(math.ceil(size[0] * by_width), canvas[0]), canvas[1])
    return canvas, (canvas[0], min(math.ceil(size[1] * by_height), canvas[1]))


def _is_untiled(prompt: VisualPrompt) -> bool:
    """OneVision cuts an image into tiles only where it is the only one of its prompt."""
    return any(int(count) != 1 for count in prompt.inputs.get("batch_num_images", ()))


def _padded_view(config: Any, size: Size) -> ImageTokens:
    """One view, padded to a square, and one newline token."""
    tile = config.vision_config.image_size
    box = view_boxes(config, tile, (tile // patch_size(config)) ** 2, *padded_extents(size))
    return ImageTokens.still((box, 0), (np.full((1, 4), np.nan), 0))


def _tiled(config: Any, size: Size) -> ImageTokens:
    tile, patch = config.vision_config.image_size, patch_size(config)
    side = tile // patch
    canvas, picture = fit(size, config.image_grid_pinpoints)
    grid = (canvas[0] // tile * side, canvas[1] // tile * side)
    spans = [
        _spans(np.arange(dropped, cells - dropped), side, tile, patch)
        for cells, dropped in zip(grid, _dropped(size, grid), strict=True)
    ]
    coarser = _coarser((len(spans[0]), len(spans[1])), side, config)
    rows, columns = (
        (_resampled(span, cells) - (whole - part) // 2) / part  # pixels before the picture begins are black
        for span, cells, whole, part in zip(spans, coarser, canvas, picture, strict=True)
    )
    tiles = grid_boxes(rows, columns).reshape(len(rows), len(columns), 4)
    tiles = np.concatenate([tiles, np.full((len(rows), 1, 4), np.nan)], axis=1)
    return ImageTokens.still((view_boxes(config, tile, side**2), 0), (tiles.reshape(-1, 4), 1))


def _spans(index: np.ndarray, side: int, tile: int, patch: int) -> np.ndarray:
    """Pixels [low, high) that tokens cover along one axis; what patches leave of a tile is unseen."""
    low = index // side * tile + index % side * patch
    return np.stack([low, low + patch], axis=1)


def _dropped(size: Size, grid: Size) -> tuple[int, int]:
    """Rows and columns of tokens dropped at either end, rounded as `unpad_image` of transformers does."""
    if size[1] / size[0] > grid[1] / grid[0]:
        return (grid[0] - int(round(size[0] * (grid[1] / size[1]), 7))) // 2, 0
    return 0, (grid[1] - int(round(size[1] * (grid[0] / size[0]), 7))) // 2


def _coarser(grid: Size, side: int, config: Any) -> Size:
    """(rows, columns) to which a grid of tokens is resampled, for "anyres_max_9" those of about 9 tiles."""
    mode = getattr(config, "vision_aspect_ratio", None)
    if mode is None:
        return grid
    most = int(mode.removeprefix(_MOST_TILES))
    ratio = math.sqrt(grid[0] * grid[1] / (most * side**2))
    return (int(grid[0] // ratio), int(grid[1] // ratio)) if ratio > _TOLERATED else grid


def _resampled(spans: np.ndarray, cells: int) -> np.ndarray:
    """The spans [cells, 2] that cells have when they share out the given ones evenly."""
    if cells == len(spans):
        return spans
    edge = np.arange(cells + 1) * len(spans) / cells
    first = np.floor(edge[:-1]).astype(int)
    last = np.ceil(edge[1:]).astype(int) - 1
    return np.stack(
        [_between(spans[first], edge[:-1] - first), _between(spans[last], edge[1:] - last)], axis=1
    )


def _between(spans: np.ndarray, part: np.ndarray) -> np.ndarray:
    return spans[:, 0] + part * (spans[:, 1] - spans[:, 0])
