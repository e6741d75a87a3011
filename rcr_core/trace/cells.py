"""Cells: visual tokens side by side that share a pixel in the maps of single layers, where they are many.

Two maps of 36 layers, 2,000 steps and 2,880 visual tokens would take 415 MB. The mean over layers, and what
is kept, are recorded by token in any case.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rcr_core.trace.geometry import VisualGeometry

_SAME_EDGE = 1e-5  # of the picture; edges that differ less are rounded differently, and are one edge


def with_cells(geometry: VisualGeometry, limit: int) -> VisualGeometry:
    """The geometry with the smallest square cells of which there are at most `limit`; unchanged if P is.

    Where pieces of pictures are so many that one cell each is too many, it is one cell each.
    """
    patches, side = len(geometry.position), 1
    if patches <= limit:
        return geometry
    pooled = geometry
    while True:
        side += 1
        before, pooled = pooled.cells, replace(geometry, cell=_cells(geometry, side))
        if pooled.cells <= limit or (pooled.cells == before and side * side > patches):
            return pooled


def _cells(geometry: VisualGeometry, side: int) -> np.ndarray:
    """The cell of each patch, i32 [P], numbered in the order of their first patch.

    Cells are `side` x `side` patches of one image, frame and level. Patches without an area are put together
    in the order of the prompt, `side` x `side` of an image.
    """
    placed = ~np.isnan(geometry.box).any(axis=1)
    key = np.zeros((len(placed), 6), np.int64)
    key[:, :4] = np.stack((geometry.image, geometry.frame, geometry.level, placed), axis=1)
    for group in np.unique(key[:, :4], axis=0):
        inside = (key[:, :4] == group).all(axis=1)
        if group[3]:
            for column, edge in ((4, 0), (5, 1)):
                key[inside, column] = _rank(geometry.box[inside, edge]) // side
        else:
            key[inside, 4] = np.arange(inside.sum()) // side**2
    _, first, cell = np.unique(key, axis=0, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    number[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return number[cell.reshape(-1)]


def _rank(edges: np.ndarray) -> np.ndarray:
    """The place of each edge among the different ones: 0 for the first column or row of patches."""
    return np.unique(np.round(edges / _SAME_EDGE).astype(np.int64), return_inverse=True)[1].reshape(-1)
