"""Qwen-VL's layout: a grid of patches in the image's own proportions, merged into tokens; frames."""

from __future__ import annotations

import math

import numpy as np

from rcr_core.models.layouts.boxes import Size, even_spans, grid_boxes
from rcr_core.models.layouts.layout import ImageTokens, Layout, VisualPrompt


class PatchGrid(Layout):
    """One grid an image, its size in patches given by the processor as (frames, rows, columns)."""

    def fits(self, prompt: VisualPrompt) -> bool:
        return "image_grid_thw" in prompt.inputs

    def tokens(self, prompt: VisualPrompt) -> list[ImageTokens]:
        return [self._image(*self._merged(prompt, index)) for index in range(len(prompt.sizes))]

    def shown(self, prompt: VisualPrompt, index: int, pixels: int) -> Size:
        """Every token stays a whole number of pixels wide and high."""
        _, rows, columns = self._merged(prompt, index)
        vision = prompt.config.vision_config
        cell = vision.patch_size * vision.spatial_merge_size
        cell = max(1, min(cell, math.isqrt(pixels // (rows * columns))))
        return rows * cell, columns * cell

    @staticmethod
    def _image(frames: int, rows: int, columns: int) -> ImageTokens:
        box = np.tile(grid_boxes(even_spans(rows), even_spans(columns)), (frames, 1))
        return ImageTokens(box, np.zeros(len(box)), np.repeat(np.arange(frames), rows * columns))

    @staticmethod
    def _merged(prompt: VisualPrompt, index: int) -> tuple[int, int, int]:
        """(frames, rows, columns) of tokens."""
        frames, rows, columns = (int(count) for count in prompt.inputs["image_grid_thw"][index])
        merge = prompt.config.vision_config.spatial_merge_size
        return frames, rows // merge, columns // merge
