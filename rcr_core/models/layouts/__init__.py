"""Layouts, a family of models or two each: which visual token shows which part of which image."""

from rcr_core.models.layouts.anyres import AnyRes
from rcr_core.models.layouts.boxes import Size
from rcr_core.models.layouts.layout import Layout, VisualPrompt
from rcr_core.models.layouts.patch_grid import PatchGrid
from rcr_core.models.layouts.single_view import PanAndScan, SingleView
from rcr_core.models.layouts.split_image import SplitImage
from rcr_core.models.layouts.thumbnail import TilesAndThumbnail

LAYOUTS: tuple[Layout, ...] = (
    PatchGrid(),
    AnyRes(),
    SplitImage(),
    TilesAndThumbnail(),
    SingleView(),
    PanAndScan(),
    Layout(),
)

__all__ = ["LAYOUTS", "Layout", "Size", "VisualPrompt", "layout_of"]


def layout_of(prompt: VisualPrompt) -> Layout:
    """The first layout that fits; the last, which knows no boxes, always does."""
    return next(layout for layout in LAYOUTS if layout.fits(prompt))
