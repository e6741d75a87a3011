"""What the page must show of a trace, worked out from the trace alone."""

from __future__ import annotations

import numpy as np


def value(trace, step: int, layer, map_name: str = "attention", head="mean") -> np.ndarray:
    """The values of a map, f32 [P]: shares of the attention of a step."""
    if map_name == "attention" and layer == "mean":
        return dequantised(trace.map_mean[step], trace.map_mean_scale[step])
    name = {"attention": "map_layer", "missed": "missed_layer", "full": "map_full"}[map_name]
    values, scales = getattr(trace, name)[step], getattr(trace, f"{name}_scale")[step]
    if layer == "mean":
        managed = np.array(trace.meta.managed)
        each = values[managed].astype(np.float64) / 255 * scales[managed, None].astype(np.float64)
        return each.mean(0).astype(np.float32)
    if map_name == "attention" and head != "mean" and trace.map_head is not None:
        return dequantised(trace.map_head[step, layer, head], trace.map_head_scale[step, layer, head])
    return dequantised(values[layer], scales[layer])


def dequantised(pixels: np.ndarray, scale: np.float32) -> np.ndarray:
    """In double precision, then rounded once, as JavaScript does it."""
    return (pixels.astype(np.float64) / 255 * float(scale)).astype(np.float32)


def kept(trace, step: int, layer: int) -> np.ndarray:
    """Whether each KV head attends to each visual token, bool [H, P]."""
    chosen = trace.selection(step, layer)
    position = trace.patch_position
    if chosen is None:
        return np.ones((trace.meta.kv_heads, len(position)), bool)
    return np.array([np.isin(position, row) | (position >= trace.meta.prefix_length) for row in chosen])


def kept_by_any(trace, step: int, layer, head="mean") -> np.ndarray:
    """Whether any of the shown (layer, KV head) pairs attends to each visual token, bool [P]."""
    layers = np.flatnonzero(trace.meta.managed) if layer == "mean" else [layer]
    found = np.array([kept(trace, step, one) for one in layers])
    return found.any((0, 1)) if head == "mean" else found[:, head].any(0)


def entries_exchanged(trace, step: int, layer: int) -> list[int]:
    """Entries of each KV head that were not there a step before."""
    now, before = trace.selection(step, layer), trace.selection(step - 1, layer)
    if now is None or before is None:
        return [0] * trace.meta.kv_heads
    return [len(set(new) - set(old)) for new, old in zip(now.tolist(), before.tolist(), strict=True)]


def deciding(trace, step: int) -> np.ndarray:
    """The layers that decide at a step."""
    return np.flatnonzero(np.array(trace.meta.managed) & (trace.selected_row[step] >= 0) & (step > 0))


def refresh_share(trace, step: int) -> float:
    layers = deciding(trace, step)
    return float(trace.fire[step, layers].mean()) if len(layers) else 0.0


def visual_share(trace, step: int) -> float:
    return float(trace.mass[step, np.array(trace.meta.managed), 0].mean(dtype=np.float64))


def scale_end(trace, scales: np.ndarray) -> np.float32:
    """The end of a colour scale over a run: of the steps' largest values, what one in twenty exceeds."""
    return np.sort(scales)[min(int(0.95 * trace.steps), trace.steps - 1)]


def short(number: float) -> str:
    """Three significant digits, as people write them."""
    if number == 0:
        return "0"
    if abs(number) < 1e-4:
        mantissa, exponent = f"{number:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return np.format_float_positional(float(f"{float(number):.3g}"), trim="-")


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"
