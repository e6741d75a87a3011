"""The maps that a run records: how many of them it can afford, how fine, and as pixels.

Three runs of a page stay within what a store holds when each keeps to these limits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rcr_core.engine.engine import ModelShape
from rcr_core.trace import VisualGeometry

MAX_LAYER_MAP_BYTES = 112 << 20  # of all maps of single layers, but those of KV heads
MAX_HEAD_MAP_BYTES = 64 << 20


def most_cells(shape: ModelShape, steps: int, diagnostics: bool) -> int:
    """How many pixels the map of a single layer may have in a run of at most `steps` tokens."""
    maps = 3 if diagnostics else 2  # attention on what is kept, what is missed; and if nothing were evicted
    return max(1, MAX_LAYER_MAP_BYTES // (maps * shape.layers * max(steps, 1)))


def head_maps_fit(shape: ModelShape, patches: int, steps: int) -> bool:
    """Whether a run of at most `steps` tokens records the attention of every KV head."""
    return shape.layers * shape.kv_heads * patches * steps <= MAX_HEAD_MAP_BYTES


class CellMeans:
    """Means over the patches of each cell, [X, P] -> [X, Z]; the same maps where each patch is a cell."""

    def __init__(self, geometry: VisualGeometry, device: torch.device):
        self.cells = geometry.cells
        self._cell: Tensor | None = None
        if geometry.cell is not None:
            cell = torch.as_tensor(geometry.cell, dtype=torch.long)
            self._share = torch.bincount(cell, minlength=self.cells).reciprocal().to(device)
            self._cell = cell.to(device)

    def __call__(self, maps: Tensor) -> Tensor:
        if self._cell is None:
            return maps
        return maps.new_zeros(len(maps), self.cells).index_add_(1, self._cell, maps) * self._share


def quantised(maps: Tensor) -> tuple[Tensor, Tensor]:
    """uint8 pixels [X, P] and their scale float32 [X]: a value is pixel / 255 * scale."""
    if maps.shape[-1] == 0:
        return maps.to(torch.uint8), maps.new_zeros(maps.shape[0])
    scale = maps.amax(-1)
    pixels = (maps * (255.0 / scale.clamp_min(1e-30)).unsqueeze(-1)).round_().to(torch.uint8)
    return pixels, scale
