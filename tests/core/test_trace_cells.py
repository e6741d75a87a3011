"""Cells: which visual tokens share a pixel of a single layer's maps, told by hand on small layouts."""

from __future__ import annotations

import numpy as np
import pytest

from rcr_core.errors import TraceError
from rcr_core.trace import VisualGeometry, with_cells
from tests.core.trace_samples import small_trace

NOWHERE = [np.nan] * 4


def grid(rows: int, columns: int) -> list[list[float]]:
    """The boxes of a whole picture in patches, row by row."""
    return [
        [x / columns, y / rows, (x + 1) / columns, (y + 1) / rows]
        for y in range(rows)
        for x in range(columns)
    ]


def geometry(boxes, image=None, level=None, frame=None) -> VisualGeometry:
    count = len(boxes)
    columns = {
        name: np.asarray(value if value is not None else [0] * count, np.int32)
        for name, value in (("image", image), ("level", level), ("frame", frame))
    }
    return VisualGeometry(
        position=np.arange(count, dtype=np.int32),
        box=np.asarray(boxes, np.float32),
        size=((30, 40), (30, 40)),
        **columns,
    )


def test_few_patches_stay_as_they_are():
    whole = geometry(grid(4, 6))
    assert with_cells(whole, 24) is whole
    assert whole.cell is None and whole.cells == 24


def test_cells_are_squares_of_patches_cut_off_at_the_edges():
    pooled = with_cells(geometry(grid(3, 5)), 14)
    assert pooled.cell.reshape(3, 5).tolist() == [[0, 0, 1, 1, 2], [0, 0, 1, 1, 2], [3, 3, 4, 4, 5]]
    assert pooled.cells == 6
    # 6 cells are one too many for a limit of 5, so they become 3 x 3.
    assert with_cells(geometry(grid(3, 5)), 5).cell.reshape(3, 5).tolist() == [[0, 0, 0, 1, 1]] * 3


def test_pictures_levels_and_frames_are_never_mixed():
    boxes = grid(2, 2) * 4
    images = np.repeat([0, 0, 0, 1], 4)
    pooled = with_cells(
        geometry(boxes, images, np.repeat([0, 1, 0, 0], 4), np.repeat([0, 0, 1, 0], 4)), limit=4
    )
    assert pooled.cell.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    # They are not mixed even where the limit asks for it.
    assert with_cells(pooled, 2).cells == 4


def test_tokens_without_an_area_share_cells_in_the_order_of_the_prompt():
    """As a layout that is not known, or the newlines between rows of tiles."""
    assert with_cells(geometry([NOWHERE] * 9), 3).cell.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    rows = [*grid(2, 2)[:2], NOWHERE, *grid(2, 2)[2:], NOWHERE]
    assert with_cells(geometry(rows), 2).cell.tolist() == [0, 0, 1, 0, 0, 1]


def test_edges_that_are_rounded_differently_are_one_edge():
    boxes = np.asarray(grid(4, 4), np.float32)
    noise = np.random.default_rng(0).uniform(-1e-7, 1e-7, boxes.shape).astype(np.float32)
    blurred = with_cells(geometry((boxes + noise).clip(0, 1)), 4)
    assert blurred.cell.reshape(4, 4).tolist() == [[0, 0, 1, 1]] * 2 + [[2, 2, 3, 3]] * 2


def test_a_picture_of_2880_patches_fits_a_long_run():
    """45 x 64 patches in 2 x 2: 23 x 32 cells."""
    pooled = with_cells(geometry(grid(45, 64)), 800)
    assert pooled.cells == 23 * 32
    assert np.bincount(pooled.cell).max() == 4


@pytest.mark.parametrize("cell", [[0, 2, 1, 4], [1, 2, 3, 3], [-1, 0, 1, 2], [0, 0, 0, (1 << 31) - 1]])
def test_cells_with_gaps_are_refused(cell):
    with pytest.raises(TraceError, match="cell"):
        small_trace(patch_cell=np.array(cell, np.int32))


def test_a_trace_has_its_maps_of_layers_by_cell_and_gives_them_by_patch():
    maps = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    trace = small_trace(patch_cell=np.array([0, 1, 1, 0], np.int32), map_layer=maps, missed_layer=maps)
    assert trace.geometry.cells == 2
    assert trace.by_patch(trace.map_layer)[2, 1].tolist() == [10, 11, 11, 10]
    assert trace.map_mean.shape == (3, 4)
    with pytest.raises(TraceError, match="map_layer|patch_cell"):
        small_trace(patch_cell=np.array([0, 1, 1, 0], np.int32))
