"""Values of visual tokens, painted onto the picture."""

import numpy as np
import pytest

from rcr_core.trace import VisualGeometry
from tests.core.test_trace_builder import F32, I32, geometry


def test_paint_two_halves():
    picture = geometry().paint([1, 3], shape=(2, 4))
    assert picture.dtype == F32
    assert picture.tolist() == [[1, 1, 3, 3], [1, 1, 3, 3]]


def test_paint_means_overlaps_and_leaves_gaps():
    boxes = np.array([[0, 0, 0.5, 0.5], [0.25, 0, 0.75, 0.5]], F32)
    nan = np.nan
    expected = [[2, 4, 6, nan], [2, 4, 6, nan], [nan] * 4, [nan] * 4]
    np.testing.assert_array_equal(geometry(box=boxes).paint([2, 6], shape=(4, 4)), expected)


def test_paint_weighs_by_area_where_boxes_are_smaller_than_pixels():
    """One pixel over a quarter of value 8 and three quarters of value 4 shows 5."""
    boxes = np.array([[0, 0, 0.25, 1], [0.25, 0, 1, 1]], F32)
    assert geometry(box=boxes).paint([8, 4], shape=(1, 1)).tolist() == [[5]]


def test_paint_chooses_image_frame_and_level():
    place = geometry(level=np.array([0, 1], I32), box=np.array([[0, 0, 1, 1]] * 2, F32))
    assert place.paint([1, 3], shape=(1, 1)).tolist() == [[2]]
    assert place.paint([1, 3], level=1, shape=(1, 1)).tolist() == [[3]]
    assert np.isnan(place.paint([1, 3], frame=1, shape=(2, 2))).all()
    assert np.isnan(place.paint([1, 3], image=1, shape=(2, 2))).all()


def test_paint_leaves_out_tokens_without_area_or_value():
    boxes = np.array([[0, 0, 1, 1], [np.nan] * 4], F32)
    assert geometry(box=boxes).paint([1, 3], shape=(1, 1)).tolist() == [[1]]
    assert geometry(box=np.array([[0, 0, 1, 1]] * 2, F32)).paint([np.nan, 3], shape=(1, 1)).tolist() == [[3]]


def test_a_grid_of_thirds_leaves_no_seam():
    """Edges such as 1/3 are not exact in f32: no gap between neighbours, no bleeding into the next pixel."""
    edge = np.arange(4) / 3
    boxes = [[edge[x], edge[y], edge[x + 1], edge[y + 1]] for y in range(3) for x in range(3)]
    count = np.zeros(9, I32)
    place = geometry(
        position=np.arange(9, dtype=I32), image=count, frame=count, level=count, box=np.array(boxes, F32)
    )
    picture = place.paint(np.arange(9), shape=(6, 6))
    np.testing.assert_allclose(picture, np.arange(9).reshape(3, 3).repeat(2, 0).repeat(2, 1), atol=1e-5)
    half = geometry(box=np.array([[0, 0, 1 / 3, 1]] * 2, F32)).paint([1, 1], shape=(1, 3))
    np.testing.assert_array_equal(half, [[1, np.nan, np.nan]])


def test_paint_refuses_the_wrong_number_of_values():
    with pytest.raises(ValueError, match="value must have shape"):
        geometry().paint([1, 2, 3])


def test_geometry_without_visual_tokens_paints_nothing():
    none = np.zeros(0, I32)
    place = VisualGeometry(none, none, none, none, np.zeros((0, 4), F32), ())
    assert np.isnan(place.paint([], shape=(2, 2))).all()
