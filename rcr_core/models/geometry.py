"""Which visual token shows which part of which image.

The layout is read off the inputs that the processor made, never off a model's name: grids of patches
(Qwen-VL), sizes and resolutions (LLaVA-NeXT), or one square grid a picture (LLaVA, PaliGemma, Gemma 3).
A layout that is not known yields tokens without boxes, because no box is better than a wrong one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rcr_core.errors import PromptError
from rcr_core.models.tiling import Size, anyres_boxes, fit, grid_boxes
from rcr_core.trace import VisualGeometry

_EMPTY = (np.empty((0, 4)), np.empty(0), np.empty(0))  # boxes, levels, frames of a prompt without images
_WHOLE = (0.0, 0.0, 1.0, 1.0)


def visual_geometry(
    config: Any, inputs: dict[str, Any], sizes: tuple[Size, ...], image_processor: Any = None
) -> VisualGeometry:
    """The geometry of the visual tokens of a prompt.

    `config` is the model's, `inputs` the processor's output for one prompt (input_ids [1, T] and what came of
    the images), `sizes` the (height, width) of the images. `image_processor` tells whether a square grid
    shows only a crop.

    Raises `PromptError` where the prompt holds another number of visual tokens than its images need.
    """
    ids = np.asarray(inputs["input_ids"][0].tolist())
    position = np.flatnonzero(ids == config.image_token_id).astype(np.int32)
    layouts = _layouts(config, inputs, sizes, image_processor, len(position))
    counts = [len(level) for _, level, _ in layouts]
    if sum(counts) != len(position):
        raise PromptError(
            f"the prompt holds {len(position)} image tokens, its images need {sum(counts)}",
            "the processor and the model do not belong together",
        )
    box, level, frame = (np.concatenate(parts) for parts in zip(_EMPTY, *layouts, strict=True))
    return VisualGeometry(
        position=position,
        image=np.repeat(np.arange(len(sizes), dtype=np.int32), counts),
        frame=frame.astype(np.int32),
        level=level.astype(np.int32),
        box=box.astype(np.float32),
        size=tuple(sizes),
    )


def shown_size(config: Any, inputs: dict[str, Any], size: Size, pixels: int) -> Size:
    """The size to show the first image at: what the model saw, in at most `pixels` pixels.

    On a grid of patches every token stays a whole number of pixels wide and high.
    """
    if "image_grid_thw" in inputs:
        _, rows, columns = _merged(config, inputs["image_grid_thw"][0])
        cell = config.vision_config.patch_size * config.vision_config.spatial_merge_size
        cell = max(1, min(cell, math.isqrt(pixels // (rows * columns))))
        return rows * cell, columns * cell
    height, width = fit(size, config.image_grid_pinpoints)[1] if _is_anyres(config, inputs) else size
    scale = min(1.0, math.sqrt(pixels / (height * width)))
    return max(1, int(height * scale)), max(1, int(width * scale))


def _layouts(
    config: Any, inputs: dict, sizes: tuple[Size, ...], image_processor: Any, tokens: int
) -> list[tuple]:
    """Boxes [n, 4], levels [n] and frames [n] of each image."""
    if not sizes:
        return []
    if "image_grid_thw" in inputs:
        return [_patch_grid(*_merged(config, grid)) for grid in inputs["image_grid_thw"]]
    if _is_anyres(config, inputs):
        tile, patch = config.vision_config.image_size, config.vision_config.patch_size
        layouts = [anyres_boxes(size, config.image_grid_pinpoints, tile, patch) for size in sizes]
        return [(box, level, np.zeros(len(level))) for box, level in layouts]
    share = tokens // len(sizes)
    views = inputs["pixel_values"].shape
    if len(views) == 4 and views[0] == len(sizes) and math.isqrt(share) ** 2 == share:
        side = math.isqrt(share)
        return [_patch_grid(1, side, side, _visible(size, image_processor)) for size in sizes]
    if len(sizes) > 1:
        raise PromptError("this model's layout of several images is not known", "send one image")
    return [(np.full((tokens, 4), np.nan), np.zeros(tokens), np.zeros(tokens))]


def _is_anyres(config: Any, inputs: dict) -> bool:
    """LLaVA-NeXT's layout; LLaVA-OneVision also names an aspect mode, and thins its tiles out."""
    sized = "image_sizes" in inputs and hasattr(config, "image_grid_pinpoints")
    return sized and not hasattr(config, "vision_aspect_ratio")


def _merged(config: Any, grid: Any) -> tuple[int, int, int]:
    """(frames, rows, columns) of tokens from a grid of patches."""
    frames, rows, columns = (int(count) for count in grid)
    merge = config.vision_config.spatial_merge_size
    return frames, rows // merge, columns // merge


def _patch_grid(
    frames: int, rows: int, columns: int, visible=_WHOLE
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x0, y0, x1, y1 = visible
    y = y0 + (y1 - y0) * np.arange(rows + 1) / rows
    x = x0 + (x1 - x0) * np.arange(columns + 1) / columns
    spans = (np.stack([edge[:-1], edge[1:]], axis=1) for edge in (y, x))
    box = np.tile(grid_boxes(*spans), (frames, 1))
    return box, np.zeros(len(box)), np.repeat(np.arange(frames), rows * columns)


def _visible(size: Size, image_processor: Any) -> tuple[float, ...]:
    """The part of an image that a centre crop leaves, as a box; NaN where the crop reaches outside."""
    if not getattr(image_processor, "do_center_crop", False):
        return _WHOLE
    scaled, crop = image_processor.size, image_processor.crop_size
    if scaled.shortest_edge:
        resized = [int(scaled.shortest_edge * side / min(size)) for side in size]
    else:
        resized = [scaled.height, scaled.width]
    box = []
    for whole, part in zip(resized, (crop.height, crop.width), strict=True):
        low = (whole - part) // 2
        box.append((low / whole, (low + part) / whole) if low >= 0 else (math.nan, math.nan))
    (y0, y1), (x0, x1) = box
    return (x0, y0, x1, y1) if not math.isnan(x0 + y0) else (math.nan,) * 4
