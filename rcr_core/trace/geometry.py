"""Where each visual token lies: on the prompt, and on the original image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rcr_core.errors import TraceError

_COLUMNS = {name: np.int32 for name in ("position", "image", "frame", "level", "cell")} | {"box": np.float32}
_COVERED = 1e-3  # of a pixel's area; less is the rounding of a box's edge


@dataclass(frozen=True, eq=False)
class VisualGeometry:
    """The place of each of the P visual tokens of a prompt.

    position  i32 [P]     prompt index
    image     i32 [P]     which of the images it shows
    frame     i32 [P]     which frame, for video
    level     i32 [P]     0 = the whole view, 1 = a tile
    box       f32 [P, 4]  x0, y0, x1, y1 on the original image in [0, 1]; a NaN row has no area there
    size      (height, width) of each original image
    cell      i32 [P]     which pixel of a single layer's maps it shares with its neighbours, 0 to Z - 1; None
                          where each has its own (see `rcr_core.trace.cells`)

    Raises `TraceError` naming the field.
    """

    position: np.ndarray
    image: np.ndarray
    frame: np.ndarray
    level: np.ndarray
    box: np.ndarray
    size: tuple[tuple[int, int], ...]
    cell: np.ndarray | None = None

    def __post_init__(self):
        object.__setattr__(self, "size", tuple((int(height), int(width)) for height, width in self.size))
        self._check_shapes()
        if (self.position < 0).any() or len(np.unique(self.position)) != len(self.position):
            raise TraceError("position must hold different prompt indices, 0 or more")
        if ((self.image < 0) | (self.image >= len(self.size))).any():
            raise TraceError(f"image must hold indices of the {len(self.size)} images")
        if (self.frame < 0).any():
            raise TraceError("frame must be 0 or more")
        if not np.isin(self.level, (0, 1)).all():
            raise TraceError("level must be 0 (whole view) or 1 (tile)")
        self._check_boxes()
        if self.cell is not None:
            used = np.unique(self.cell)
            if used.size and (used[0] != 0 or used[-1] != len(used) - 1):
                raise TraceError("cell must number cells from 0 on, without gaps")

    @property
    def cells(self) -> int:
        """Z, the pixels of a single layer's maps."""
        return len(self.position) if self.cell is None else int(self.cell.max(initial=-1)) + 1

    def _check_shapes(self) -> None:
        if any(height < 1 or width < 1 for height, width in self.size):
            raise TraceError("size must hold (height, width) pairs of 1 or more")
        for name, dtype in _COLUMNS.items():
            value = getattr(self, name)
            if name == "cell" and value is None:
                continue
            shape = (len(self.position), 4) if name == "box" else (len(self.position),)
            if not isinstance(value, np.ndarray) or value.dtype != dtype or value.shape != shape:
                raise TraceError(f"{name} must be {np.dtype(dtype).name} of shape {shape}")

    def _check_boxes(self) -> None:
        absent = np.isnan(self.box)
        if (absent.any(axis=1) != absent.all(axis=1)).any():
            raise TraceError("box rows must be numbers, or NaN throughout")
        x0, y0, x1, y1 = self.box[~absent.any(axis=1)].T
        if not ((x0 >= 0) & (y0 >= 0) & (x0 <= x1) & (y0 <= y1) & (x1 <= 1) & (y1 <= 1)).all():
            raise TraceError("box rows must be x0 <= x1, y0 <= y1 in [0, 1]")

    def paint(
        self,
        value: np.ndarray,
        image: int = 0,
        frame: int = 0,
        level: int | None = None,
        shape: tuple[int, int] = (64, 64),
    ) -> np.ndarray:
        """A picture, f32 of `shape` (height, width), of one value per visual token on one image and frame.

        value [P]. Where boxes overlap it is their mean, weighted by the share of the pixel that each covers;
        NaN where no box covers anything. `level` None takes all levels. Tokens of value NaN are left out.
        """
        value = np.asarray(value, dtype=np.float64)
        if value.shape != self.position.shape:
            raise ValueError(f"value must have shape {self.position.shape}, got {value.shape}")
        shown = (self.image == image) & (self.frame == frame) & ~np.isnan(value)
        shown &= ~np.isnan(self.box).any(axis=1)
        if level is not None:
            shown &= self.level == level
        x0, y0, x1, y1 = self.box[shown].astype(np.float64).T
        rows = _overlap(y0, y1, shape[0])  # [shown, height]
        columns = _overlap(x0, x1, shape[1])  # [shown, width]
        weight = rows.T @ columns
        total = rows.T @ (columns * value[shown, None])
        covered = weight > _COVERED
        return np.where(covered, total / np.where(covered, weight, 1), np.nan).astype(np.float32)


def _overlap(low: np.ndarray, high: np.ndarray, pixels: int) -> np.ndarray:
    """The part of each pixel that [low, high] covers: [boxes, pixels] in [0, 1]."""
    edge = np.arange(pixels)
    inside = np.minimum(high[:, None] * pixels, edge + 1) - np.maximum(low[:, None] * pixels, edge)
    return inside.clip(0, 1)
