"""A run made by hand that has everything a figure or table must tell apart.

Four layers: layer 0 is passed through, layer 1 keeps its whole prefix, layers 2 and 3 decide.
"""

from __future__ import annotations

import numpy as np

from rcr_core.trace import Trace
from tests.core.trace_samples import F32, I32, PNG, U8, U16, small_meta

LAYERS, HEADS, SELECT, PREFIX, PATCHES = 4, 2, 3, 10, 4
DECIDING = (2, 3)


def made_trace(steps: int = 40, **changes) -> Trace:
    """A run of `rcr`; `changes` are fields of its metadata."""
    rng = np.random.default_rng(7)
    fire = np.zeros((steps, LAYERS), U8)
    tau = np.zeros((steps, LAYERS), F32)
    drift = np.zeros((steps, LAYERS), F32)
    row = np.full((steps, LAYERS), -1, I32)
    selections: list[np.ndarray] = []
    threshold = 0.03
    for step in range(steps):
        for layer in DECIDING:
            if step == 0:
                selections.append(some_selection(rng))
                row[step, layer] = len(selections) - 1
                continue
            drift[step, layer] = rng.uniform(0, 0.6)
            tau[step, layer] = threshold
            fire[step, layer] = drift[step, layer] > threshold
            if fire[step, layer]:
                selections.append(some_selection(rng))
            row[step, layer] = len(selections) - 1 if fire[step, layer] else row[step - 1, layer]
            threshold *= np.exp(0.5 * (float(fire[step, layer]) - 0.4))
    mass = rng.dirichlet(np.ones(4), (steps, LAYERS)).astype(F32)
    mass[:, 0] = 0  # passed through
    values = {
        "token_text": [f" word{step}" for step in range(steps)],
        "timings": {"prefill": 0.5, "steps": [0.25 + step / 8 for step in range(1, steps)]},
        "settings": {"select": SELECT, "tau0": 0.03, "rho": 0.4, "gain": 0.5},
        "edits": [],
        "top_text": [],
        "layers": LAYERS,
        "kv_heads": HEADS,
        "select": SELECT,
        "prompt_length": PREFIX + 2,
        "prefix_length": PREFIX,
        "managed": [False, True, True, True],
    }
    return Trace(
        meta=small_meta(**{**values, **changes}),
        tokens=np.arange(100, 100 + steps, dtype=I32),
        logprob=-rng.random(steps, F32),
        top_ids=np.zeros((steps, 3), I32),
        top_logprob=np.full((steps, 3), -1.5, F32),
        drift=drift,
        tau=tau,
        fire=fire,
        selected=np.array(selections, U16).reshape(-1, HEADS, SELECT),
        selected_row=row,
        mass=mass,
        map_mean=np.zeros((steps, PATCHES), U8),
        map_mean_scale=np.ones(steps, F32),
        map_layer=np.zeros((steps, LAYERS, PATCHES), U8),
        map_layer_scale=np.ones((steps, LAYERS), F32),
        missed_layer=np.zeros((steps, LAYERS, PATCHES), U8),
        missed_layer_scale=np.ones((steps, LAYERS), F32),
        patch_box=np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1], [np.nan] * 4, [0, 0, 1, 1]], F32),
        patch_position=np.arange(PATCHES, dtype=I32),
        patch_image=np.zeros(PATCHES, I32),
        patch_frame=np.zeros(PATCHES, I32),
        patch_level=np.array([1, 1, 1, 0], I32),
        image=np.frombuffer(PNG, U8),
    )


def some_selection(rng: np.random.Generator) -> np.ndarray:
    """[H, S], different ascending prefix indices per KV head."""
    return np.sort([rng.choice(PREFIX, SELECT, replace=False) for _ in range(HEADS)], axis=1)


def one_shot_trace(steps: int = 6, **changes) -> Trace:
    """A run of `bacon`: drift is there, and no threshold and no refresh."""
    made = made_trace(steps, policy="bacon", **changes)
    first = np.broadcast_to(made.selected_row[:1], made.selected_row.shape).copy()
    zeros = {"tau": np.zeros_like(made.tau), "fire": np.zeros_like(made.fire)}
    return changed(made, selected_row=first, selected=made.selected[:2], **zeros)


def full_trace(steps: int = 6, **changes) -> Trace:
    """A run of `full`: no layer evicts anything."""
    made = made_trace(steps, policy="full", **changes)
    zeros = {name: np.zeros_like(getattr(made, name)) for name in ("drift", "tau", "fire")}
    return changed(
        made, selected_row=np.full_like(made.selected_row, -1), selected=made.selected[:0], **zeros
    )


def changed(trace: Trace, **arrays: np.ndarray) -> Trace:
    """The same trace with other arrays."""
    return Trace(meta=trace.meta, **{**trace.arrays(), **arrays})


def naive_decisions(trace: Trace) -> list[tuple[int, int]]:
    """(step, layer) of every decision, found the slow way."""
    return [
        (step, layer)
        for step in range(1, trace.steps)
        for layer in range(trace.meta.layers)
        if trace.meta.managed[layer] and trace.selected_row[step, layer] >= 0
    ]
