"""What a run leaves behind: a record per step while it goes on, and the trace that everything is drawn from.

Pictures are quantised: a pixel's value is `u8 / 255 * scale`. Numbers (drift, mass, tau) stay floats.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from rcr_core.errors import TraceError
from rcr_core.trace.geometry import VisualGeometry
from rcr_core.trace.images import check_images, split_images
from rcr_core.trace.meta import TraceMeta
from rcr_core.trace.schema import DTYPES, check_layout

_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class StepRecord:
    """What one forward pass saw. Step 0 is the prefill, which takes no decision.

    `text` is the piece of caption that the token completed, None where it completed no character. `whole`
    marks layers that kept their whole prefix at this step: they have no selection, their rows of `selected`
    are ignored. `mass` is the attention on selected visual, selected text, window and generated entries.
    `top_text` names the likeliest tokens, or is empty. A run has each of the fields with a default at every
    step or at none.
    """

    step: int
    token: int
    text: str | None
    logprob: float
    top_ids: np.ndarray  # i32 [K], K <= 5
    top_logprob: np.ndarray  # f32 [K]
    drift: np.ndarray  # f32 [L]
    tau: np.ndarray  # f32 [L]
    fire: np.ndarray  # u8 [L]
    whole: np.ndarray  # u8 [L]
    selected: np.ndarray  # i32 [L, H, S]
    mass: np.ndarray  # f32 [L, 4]
    map_mean: np.ndarray  # u8 [P]
    map_mean_scale: float
    map_layer: np.ndarray  # u8 [L, Z]
    map_layer_scale: np.ndarray  # f32 [L]
    missed_layer: np.ndarray  # u8 [L, Z]
    missed_layer_scale: np.ndarray  # f32 [L]
    seconds: float
    missed: np.ndarray | None = None  # f32 [L]: the detector's estimate of what is missed after the decision
    drift_exact: np.ndarray | None = None  # f32 [L]
    recall: np.ndarray | None = None  # f32 [L]
    map_full: np.ndarray | None = None  # u8 [L, Z]
    map_full_scale: np.ndarray | None = None  # f32 [L]
    top_position: np.ndarray | None = (
        None  # i32 [L, H * G], argmax over the prefix of the full-cache attention
    )
    map_head: np.ndarray | None = None  # u8 [L, H, Z], mean over the query heads of each KV head
    map_head_scale: np.ndarray | None = None  # f32 [L, H]
    asked: np.ndarray | None = None  # i32 [L]: vectors asked of an offloaded prefix, all KV heads together
    fetched: np.ndarray | None = None  # i32 [L]: those of them that were read from host memory
    top_text: tuple[str, ...] = ()  # K names, as `top_ids`


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """A run of N generated tokens (0 or more), finished or not: metadata and arrays, checked on construction.

    `selected` holds each distinct selection once; `selected_row` says which one a layer-step used, -1 where
    the layer kept its whole prefix. `image` is the PNG of the processed input, and may be empty; of several
    images it holds one PNG after another, and `image_end` where each of them ends. Raises `TraceError` naming
    the array; none may hold NaN or infinity, but for NaN rows of `patch_box` (no area).
    """

    meta: TraceMeta
    tokens: np.ndarray  # i32 [N]
    logprob: np.ndarray  # f32 [N]
    top_ids: np.ndarray  # i32 [N, K]
    top_logprob: np.ndarray  # f32 [N, K]
    drift: np.ndarray  # f32 [N, L]
    tau: np.ndarray  # f32 [N, L]
    fire: np.ndarray  # u8 [N, L]
    selected: np.ndarray  # u16 or u32 [U, H, S]
    selected_row: np.ndarray  # i32 [N, L]
    mass: np.ndarray  # f32 [N, L, 4]
    map_mean: np.ndarray  # u8 [N, P]
    map_mean_scale: np.ndarray  # f32 [N]
    map_layer: np.ndarray  # u8 [N, L, Z]
    map_layer_scale: np.ndarray  # f32 [N, L]
    missed_layer: np.ndarray  # u8 [N, L, Z]
    missed_layer_scale: np.ndarray  # f32 [N, L]
    patch_box: np.ndarray  # f32 [P, 4]
    patch_position: np.ndarray  # i32 [P]
    patch_image: np.ndarray  # i32 [P]
    patch_frame: np.ndarray  # i32 [P]
    patch_level: np.ndarray  # i32 [P]
    image: np.ndarray  # u8 [n]
    image_end: np.ndarray | None = None  # i32 [I]
    patch_cell: np.ndarray | None = None  # i32 [P]; None where each has its own pixel in the maps of layers
    missed: np.ndarray | None = None  # f32 [N, L]
    drift_exact: np.ndarray | None = None  # f32 [N, L]
    recall: np.ndarray | None = None  # f32 [N, L]
    map_full: np.ndarray | None = None  # u8 [N, L, Z]
    map_full_scale: np.ndarray | None = None  # f32 [N, L]
    top_position: np.ndarray | None = None  # i32 [N, L, H * G]
    map_head: np.ndarray | None = None  # u8 [N, L, H, Z]
    map_head_scale: np.ndarray | None = None  # f32 [N, L, H]
    asked: np.ndarray | None = None  # i32 [N, L]
    fetched: np.ndarray | None = None  # i32 [N, L]

    def __post_init__(self):
        arrays = self.arrays()
        check_layout(self.meta, {name: _layout(name, value) for name, value in arrays.items()})
        for name, value in arrays.items():
            check_values(name, value, self.meta)
        if self.meta.top_text and len(self.meta.top_text[0]) != self.top_ids.shape[1]:
            raise TraceError(f"top_text must name {self.top_ids.shape[1]} tokens a step, as top_ids does")
        if self.selected_row.size and self.selected_row.max() >= len(self.selected):
            raise TraceError(f"selected_row names a row beyond the {len(self.selected)} of selected")
        check_images(self.image, self.image_end)
        if self.geometry.cells != self.map_layer.shape[-1]:
            raise TraceError(f"patch_cell names {self.geometry.cells} cells, map_layer has another number")
        if (self.geometry.position >= self.meta.prompt_length).any():
            raise TraceError(f"patch_position must be below prompt_length ({self.meta.prompt_length})")

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that this trace has, by name; diagnostics that were off are left out."""
        present = ((spec.name, getattr(self, spec.name)) for spec in fields(self) if spec.name != "meta")
        return {name: value for name, value in present if value is not None}

    @cached_property
    def geometry(self) -> VisualGeometry:
        """Where the visual tokens lie."""
        return VisualGeometry(
            position=self.patch_position,
            image=self.patch_image,
            frame=self.patch_frame,
            level=self.patch_level,
            box=self.patch_box,
            size=self.meta.image_size,
            cell=self.patch_cell,
        )

    def by_patch(self, maps: np.ndarray) -> np.ndarray:
        """Maps of single layers [..., Z] as maps of visual tokens [..., P], which share a pixel in a cell."""
        return maps if self.patch_cell is None else maps[..., self.patch_cell]

    @property
    def pictures(self) -> tuple[np.ndarray, ...]:
        """The PNG file of each image, u8; of the first one alone where no more were recorded, or none."""
        return split_images(self.image, self.image_end)

    @property
    def steps(self) -> int:
        """N, the number of generated tokens."""
        return len(self.tokens)

    @property
    def text(self) -> str:
        """The caption."""
        return "".join(piece for piece in self.meta.token_text if piece)

    @cached_property
    def decided(self) -> np.ndarray:
        """Which layer-steps evict something, so that there is a decision: bool [N, L]; never the prefill."""
        decided = (self.selected_row >= 0) & np.array(self.meta.managed, bool)
        decided[:1] = False
        return decided

    @property
    def refresh_rate(self) -> float:
        """The share of layer-steps that refreshed, of those that evict something; 0 where none does."""
        return _mean(self.fire[self.decided])

    @property
    def mean_drift(self) -> float:
        """The detector's mean estimate over the same layer-steps; 0 where there is none."""
        return _mean(self.drift[self.decided])

    def reads(self, counted: np.ndarray) -> float:
        """Mean of `asked` or `fetched` over the layer-steps that evict something: vectors per KV head."""
        return _mean(counted[self.decided]) / self.meta.kv_heads

    @property
    def tau_end(self) -> float:
        """The threshold of the last decision; 0 where there is none."""
        decisions = self.tau[self.decided]
        return float(decisions[-1]) if decisions.size else 0.0

    def selection(self, step: int, layer: int) -> np.ndarray | None:
        """The prefix indices that a layer attended to at a step, i64 [H, S]; None where it kept them all."""
        row = self.selected_row[step, layer]
        return None if row < 0 else self.selected[row].astype(np.int64)

    def staleness(self) -> np.ndarray | None:
        """Per layer, how often the argmax position stays the same from a decode step to the next: f64 [L].

        A share of all pairs of adjacent steps and query heads; the prefill is no decode step. None without
        the diagnostic, or with fewer than two decode steps.
        """
        if self.top_position is None or self.steps < 3:
            return None
        decode = self.top_position[1:]
        return (decode[1:] == decode[:-1]).mean(axis=(0, 2))


def check_values(name: str, value: np.ndarray, meta: TraceMeta) -> None:
    """Raises `TraceError` on a value out of the range of the array `name`; its dtype and shape are right."""
    if value.dtype.kind == "f" and name != "patch_box" and not np.isfinite(value).all():
        raise TraceError(f"{name} holds NaN or infinity")
    low, high = _value_range(name, meta)
    if value.size and (low is not None and value.min() < low or high is not None and value.max() > high):
        limits = f"{low} or more" if high is None else f"in [{low}, {high}]"
        raise TraceError(f"{name} must be {limits}, got {value.min()} to {value.max()}")


def _value_range(name: str, meta: TraceMeta) -> tuple[int | None, int | None]:
    if name == "fire":
        return 0, 1
    if name == "selected":
        return 0, meta.prefix_length - 1
    if name == "top_position":
        return 0, max(meta.prefix_length - 1, 0)  # 0 where there is no prefix to have a maximum
    if name == "selected_row":
        return -1, None
    if name in ("tokens", "top_ids", "asked", "fetched") or name.endswith("_scale"):
        return 0, None
    return None, None


def _layout(name: str, value: np.ndarray) -> tuple[str, tuple[int, ...]]:
    if not isinstance(value, np.ndarray):
        raise TraceError(f"{name} must be a numpy array, got {type(value).__name__}")
    return _DTYPE_NAMES.get(value.dtype, value.dtype.name), value.shape


def _mean(value: np.ndarray) -> float:
    return float(value.mean(dtype=np.float64)) if value.size else 0.0
