"""The steps of a run from a given one on, as one batch: what the page has not seen yet, and how the run is.

Batches laid end to end are the run's arrays, and its distinct selections in the order of their first use.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rcr_core.runs import LiveRun
from rcr_core.trace import Trace
from rcr_core.web.packing import pack
from rcr_core.web.refusal import Refusal

FORMAT = "rcr-steps"
STEP_ARRAYS = (
    "tokens",
    "logprob",
    "top_ids",
    "top_logprob",
    "drift",
    "tau",
    "fire",
    "selected_row",
    "mass",
    "map_mean",
    "map_mean_scale",
    "missed",
    "drift_exact",
    "recall",
    "map_layer_scale",  # the maps themselves come in pages; their scales say early how bright a run gets
    "missed_layer_scale",
    "map_full_scale",
    "map_head_scale",
)
PROMPT_ARRAYS = (
    "patch_box",
    "patch_position",
    "patch_image",
    "patch_frame",
    "patch_level",
    "patch_cell",
    "image",
    "image_end",
)
_GROWING = {"token_text", "top_text", "timings"}  # of the metadata; they come step by step


def stamp(run: LiveRun) -> str:
    """How a run stands, beside its steps; a page that knows this stamp need not be told again."""
    return f"{run.status}.{run.place}"


def batch(run: LiveRun, since: int, owner: str) -> bytes:
    """The steps >= `since` of a run, for an owner. Raises `Refusal` where the run has not come that far."""
    state = _standing(run)  # before the trace, so that a run that is said to be done has all its steps in it
    trace = run.trace()
    steps = trace.steps if trace else 0
    if since > steps:
        raise Refusal(400, f"from must be at most {steps}, the number of steps so far, got {since}")
    state |= {"from": since, "to": steps, "total": steps, "truth": run.truth()}
    state |= {"mine": run.belongs_to(owner)}
    if trace is None:
        return pack(FORMAT, state | _NOTHING_YET, {})
    selected_from = int(trace.selected_row[:since].max(initial=-1)) + 1
    state |= {"selected_from": selected_from, "stop_reason": trace.meta.stop_reason}
    state |= _words(trace, since)
    return pack(FORMAT, state, _arrays(trace, since, selected_from))


_NOTHING_YET = {
    "selected_from": 0,
    "stop_reason": "",
    "token_text": [],
    "top_text": None,
    "seconds": [],
    "meta": None,
}


def _standing(run: LiveRun) -> dict[str, Any]:
    error = run.error
    return {
        "stamp": stamp(run),  # first: where the run changes meanwhile, the page is told again
        "id": run.id,
        "label": run.label,
        "kind": run.kind,
        "policy": run.policy,
        "status": run.status,
        "place": run.place,
        "error": error and {"message": error.message, "hint": error.hint},
        "newest": round(run.newest * 1000),
        "rate": run.rate,
    }


def _words(trace: Trace, since: int) -> dict[str, Any]:
    meta = trace.meta
    about = None
    if since == 0:
        about = {name: value for name, value in json.loads(meta.to_json()).items() if name not in _GROWING}
    return {
        "token_text": meta.token_text[since:],
        "top_text": meta.top_text[since:] if meta.top_text else None,
        "seconds": _seconds(trace)[since:],
        "meta": about,
    }


def _seconds(trace: Trace) -> list[float | None]:
    """How long each step took; None where the trace does not say."""
    timings = trace.meta.timings
    later = timings["steps"] or [None] * (trace.steps - 1)
    return [timings["prefill"], *later][: trace.steps]


def _arrays(trace: Trace, since: int, selected_from: int) -> dict[str, np.ndarray]:
    arrays = trace.arrays()
    chosen = {name: arrays[name][since:] for name in STEP_ARRAYS if name in arrays}
    chosen["selected"] = trace.selected[selected_from:]
    if since == 0:
        chosen |= {name: arrays[name] for name in PROMPT_ARRAYS if name in arrays}
    return chosen
