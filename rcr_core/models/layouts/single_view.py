"""LLaVA's, PaliGemma's and Gemma 3's layout: one square view an image, stretched, cropped or padded.

Gemma 3 can add crops of a long image ("pan and scan"), each a view of its own.
"""

from __future__ import annotations

import math

from rcr_core.models.layouts.boxes import WHOLE, Extent, Size, padded_extents, view_boxes
from rcr_core.models.layouts.layout import ImageTokens, Layout, VisualPrompt

_UNKNOWN: Extent = (math.nan, math.nan)


class SingleView(Layout):
    """One view an image; what it shows of the image is up to the image processor."""

    def fits(self, prompt: VisualPrompt) -> bool:
        return len(prompt.views) == 4 and prompt.views[0] == len(prompt.sizes) and _is_square(prompt)

    def tokens(self, prompt: VisualPrompt) -> list[ImageTokens]:
        tokens, side = prompt.tokens_of_a_view(len(prompt.sizes)), prompt.views[-1]
        extents = (_visible(size, prompt.image_processor, side) for size in prompt.sizes)
        return [ImageTokens.still((view_boxes(prompt.config, side, tokens, *part), 0)) for part in extents]


class PanAndScan(Layout):
    """The whole image, then crops along its longer side.

    Nothing tells how many crops each of several images has, so there is one image only.
    """

    def fits(self, prompt: VisualPrompt) -> bool:
        crops = len(prompt.views) == 4 and prompt.views[0] > len(prompt.sizes) == 1 and _is_square(prompt)
        return crops and hasattr(prompt.config, "mm_tokens_per_image")

    def tokens(self, prompt: VisualPrompt) -> list[ImageTokens]:
        (size,), (views, *_, side) = prompt.sizes, prompt.views
        tokens = prompt.tokens_of_a_view(views)
        axis = int(size[1] >= size[0])
        crop = math.ceil(size[axis] / (views - 1))
        parts = [(view_boxes(prompt.config, side, tokens), 0)]
        for low in range(0, crop * (views - 1), crop):
            extents = [WHOLE, WHOLE]
            extents[axis] = (low / size[axis], min(low + crop, size[axis]) / size[axis])
            parts.append((view_boxes(prompt.config, side, tokens, *extents), 1))
        return [ImageTokens.still(*parts)]


def _is_square(prompt: VisualPrompt) -> bool:
    return prompt.views[-2] == prompt.views[-1]


def _visible(size: Size, image_processor: object, side: int) -> tuple[Extent, Extent]:
    """Rows and columns of the image that a view of `side` pixels shows, possibly reaching outside of it."""
    extents = WHOLE, WHOLE
    if getattr(image_processor, "do_pad", False):
        if not hasattr(image_processor, "pad_to_square"):
            return _UNKNOWN, _UNKNOWN
        extents, size = padded_extents(size), (max(size), max(size))
    if not getattr(image_processor, "do_center_crop", False):
        return extents
    resized = _resized(size, image_processor)
    if resized is None:
        return _UNKNOWN, _UNKNOWN
    rows, columns = (
        _cropped(extent, (whole - side) // 2 / whole, side / whole)
        for extent, whole in zip(extents, resized, strict=True)
    )
    return rows, columns


def _resized(size: Size, image_processor: object) -> Size | None:
    """What a centre crop is cut from, in pixels."""
    if not image_processor.do_resize:
        return size
    target = image_processor.size
    if target.height and target.width:
        return target.height, target.width
    if target.shortest_edge and not target.longest_edge:
        height, width = (int(target.shortest_edge * side / min(size)) for side in size)
        return height, width
    return None


def _cropped(extent: Extent, low: float, length: float) -> Extent:
    """A part of an extent: it begins at the fraction `low` of it and is the fraction `length` long."""
    whole = extent[1] - extent[0]
    return extent[0] + low * whole, extent[0] + (low + length) * whole
