"""InternVL's layout: tiles of the image, then a thumbnail of the whole.

The image is stretched onto the grid of tiles whose proportions come closest to its own. Where one tile is
enough, there is no thumbnail: the tile shows the whole image.
"""

from __future__ import annotations

from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import get_optimal_tiled_canvas

from rcr_core.models.layouts.boxes import Size, tile_boxes, view_boxes
from rcr_core.models.layouts.layout import ImageTokens, Layout, VisualPrompt


class TilesAndThumbnail(Layout):
    """Tiles in raster order (level 1) and the thumbnail (level 0), the same number of tokens each."""

    def fits(self, prompt: VisualPrompt) -> bool:
        return len(prompt.views) == 4 and hasattr(prompt.config, "downsample_ratio")

    def tokens(self, prompt: VisualPrompt) -> list[ImageTokens]:
        views, _, height, width = prompt.views
        tokens = prompt.tokens_of_a_view(views)
        whole = all(len(run) % tokens == 0 for run in prompt.runs)
        if not whole or len(prompt.runs) != len(prompt.sizes) or height != width:
            return super().tokens(prompt)
        return [
            self._image(prompt, size, tokens, len(run) // tokens)
            for size, run in zip(prompt.sizes, prompt.runs, strict=True)
        ]

    @staticmethod
    def _image(prompt: VisualPrompt, size: Size, tokens: int, views: int) -> ImageTokens:
        side = prompt.views[-1]
        whole = (view_boxes(prompt.config, side, tokens), 0)
        if views == 1:
            return ImageTokens.still(whole)
        columns, rows = _grid(size, side, prompt.image_processor)
        tiles = tile_boxes(prompt.config, side, tokens, views - 1, rows, columns)
        return ImageTokens.still((tiles, 1), whole)


def _grid(size: Size, side: int, image_processor: object) -> tuple[int, int]:
    """(columns, rows) of tiles; (0, 0) where no image processor tells how they are chosen."""
    least, most = (getattr(image_processor, name, None) for name in ("min_patches", "max_patches"))
    if not least or not most:
        return 0, 0
    return get_optimal_tiled_canvas(tuple(size), (side, side), least, most)
