"""The arrays of a trace: name, type and shape of each. The file reader and `Trace` both check against it.

Letters are those of the package's legend, and besides: U distinct selections, K likeliest next tokens (at
most 5), Q query heads (H * G), I images, Z cells of a map, n bytes. N, L, H, S, Q and I come from the
metadata, the others from the first array that has them; without `patch_cell` Z is P.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rcr_core.errors import TraceError
from rcr_core.trace.meta import TraceMeta

DTYPES = {  # by their name in a safetensors header
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
}
MAX_TOP = 5
_HINT = "the file is damaged, or was written by another program"


@dataclass(frozen=True)
class ArraySpec:
    """One array: the types it may have, its dimensions (letters or numbers), whether it may be absent."""

    dtypes: tuple[str, ...]
    dims: tuple[str | int, ...]
    optional: bool = False


def _array(dtypes: str, dims: str, optional: bool = False) -> ArraySpec:
    letters = tuple(int(dim) if dim.isdigit() else dim for dim in dims.split())
    return ArraySpec(tuple(dtypes.split("/")), letters, optional)


ARRAYS = {
    "patch_box": _array("F32", "P 4"),
    "patch_position": _array("I32", "P"),
    "patch_image": _array("I32", "P"),
    "patch_frame": _array("I32", "P"),
    "patch_level": _array("I32", "P"),
    "patch_cell": _array("I32", "P", optional=True),
    "image": _array("U8", "n"),
    "image_end": _array("I32", "I", optional=True),
    "tokens": _array("I32", "N"),
    "logprob": _array("F32", "N"),
    "top_ids": _array("I32", "N K"),
    "top_logprob": _array("F32", "N K"),
    "drift": _array("F32", "N L"),
    "tau": _array("F32", "N L"),
    "fire": _array("U8", "N L"),
    "selected": _array("U16/U32", "U H S"),
    "selected_row": _array("I32", "N L"),
    "mass": _array("F32", "N L 4"),
    "map_mean": _array("U8", "N P"),
    "map_mean_scale": _array("F32", "N"),
    "map_layer": _array("U8", "N L Z"),
    "map_layer_scale": _array("F32", "N L"),
    "missed_layer": _array("U8", "N L Z"),
    "missed_layer_scale": _array("F32", "N L"),
    "missed": _array("F32", "N L", optional=True),
    "drift_exact": _array("F32", "N L", optional=True),
    "recall": _array("F32", "N L", optional=True),
    "map_full": _array("U8", "N L Z", optional=True),
    "map_full_scale": _array("F32", "N L", optional=True),
    "top_position": _array("I32", "N L Q", optional=True),
    "map_head": _array("U8", "N L H Z", optional=True),
    "map_head_scale": _array("F32", "N L H", optional=True),
    "asked": _array("I32", "N L", optional=True),
    "fetched": _array("I32", "N L", optional=True),
}
PAIRS = (
    ("map_full", "map_full_scale"),
    ("map_head", "map_head_scale"),
    ("asked", "fetched"),
)  # optional, and only together


def known_sizes(meta: TraceMeta) -> dict[str, int]:
    """The sizes that the metadata fixes, by letter."""
    return {
        "N": len(meta.token_text),
        "L": meta.layers,
        "H": meta.kv_heads,
        "S": meta.select,
        "Q": meta.kv_heads * meta.query_groups,
        "I": len(meta.image_size),
    }


def check_names(names: Iterable[str]) -> None:
    """Raises `TraceError` on an array that is unknown or missing, and on a map without its scale."""
    names = set(names)
    if unknown := sorted(names - set(ARRAYS)):
        raise TraceError(f"there is an unknown array {unknown[0][:60]!r}", "written by a newer release?")
    required = {name for name, spec in ARRAYS.items() if not spec.optional}
    for pair in PAIRS:
        if names & set(pair):
            required |= set(pair)
    if missing := sorted(required - names):
        raise TraceError(f"the array {missing[0]!r} is missing", _HINT)


def check_layout(meta: TraceMeta, layout: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
    """Raises `TraceError` unless the arrays, as (dtype name, shape) by name, are those of this `meta`."""
    check_names(layout)
    sizes = known_sizes(meta)
    for name, spec in ARRAYS.items():
        if name not in layout:
            continue
        dtype, shape = layout[name]
        if dtype not in spec.dtypes:
            raise TraceError(f"{name} must have dtype {' or '.join(spec.dtypes)}, got {dtype[:60]!r}", _HINT)
        _bind(name, spec, shape, sizes)
        if name == "patch_level" and "patch_cell" not in layout:
            sizes["Z"] = sizes["P"]
    if sizes["K"] > MAX_TOP:
        raise TraceError(f"top_ids must have at most {MAX_TOP} entries a step, got {sizes['K']}", _HINT)
    if sizes["U"] > sizes["N"] * sizes["L"]:
        raise TraceError(f"selected has {sizes['U']} rows, more than the run has layer-steps", _HINT)


def _bind(name: str, spec: ArraySpec, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Check one shape; a letter that has no size yet takes it from here."""
    expected = "[" + ", ".join(f"{dim}={sizes[dim]}" if dim in sizes else str(dim) for dim in spec.dims) + "]"
    if len(shape) != len(spec.dims):
        raise TraceError(f"{name} must have shape {expected}, got {list(shape)}", _HINT)
    for dim, size in zip(spec.dims, shape, strict=True):
        if size != (dim if isinstance(dim, int) else sizes.setdefault(dim, size)):
            raise TraceError(f"{name} must have shape {expected}, got {list(shape)}", _HINT)
