"""From a finished run to its row of a study."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from rcr_core.bundled.grading import grade
from rcr_core.findings import Row
from rcr_core.outcome import settings_of
from rcr_core.policies import POLICIES
from rcr_core.runs.fidelity import rouge_l
from rcr_core.runs.truth import scene_of
from rcr_core.settings import Settings
from rcr_core.study.task import Task
from rcr_core.study.vqa import vqa_accuracy
from rcr_core.trace import Trace, exchanges

NEAR_RHO = 0.05  # "within 5 points of rho"
SETTLED = 10  # steps that it stays there, at least


def row_of(trace: Trace, task: Task, weights: str, seconds: float) -> Row:
    """What a finished run came to. Fidelity comes with its reference, see `against`."""
    meta, sample = trace.meta, task.sample
    return Row(
        data=task.data,
        sample=sample.id,
        prompt=sample.prompt,
        model=meta.model,
        dtype=meta.dtype,
        weights=weights,
        device=meta.device,
        policy=meta.policy,
        settings=task.variant.settings.to_dict(),
        max_new_tokens=sample.max_new_tokens,
        text=trace.text,
        tokens=trace.tokens.tolist(),
        stop_reason=meta.stop_reason,
        shape={
            "layers": meta.layers,
            "kv_heads": meta.kv_heads,
            "query_groups": meta.query_groups,
            "head_dim": meta.head_dim,
            "prefix_length": meta.prefix_length,
            "prompt_length": meta.prompt_length,
        },
        seconds=round(seconds, 3),
        versions={**meta.versions, "rouge_score": version("rouge_score")},
        staleness=_staleness(trace),
        scene=sample.scene,
        **_decisions(trace),
        **_graded(trace, task),
    )


def against(row: Row, reference: Row) -> Row:
    """A row with what it keeps of its uncompressed run: all of it where the tokens are the same."""
    same = row.tokens == reference.tokens
    return replace(
        row,
        fidelity=1.0 if same else rouge_l(row.text, reference.text),
        diverges_at=-1 if same else _first_difference(row.tokens, reference.tokens),
    )


def _first_difference(tokens: list[int], others: list[int]) -> int:
    """Where one text ends before the other it differs there."""
    pairs = enumerate(zip(tokens, others, strict=False))
    return next((step for step, (a, b) in pairs if a != b), min(len(tokens), len(others)))


def _decisions(trace: Trace) -> dict[str, object]:
    """Numbers of the layer-steps that evict something; none where nothing does."""
    decided = trace.decided
    if not decided.any():
        return {}
    fired = decided & (trace.fire == 1)
    layers = [_mean(fired[:, layer], decided[:, layer]) for layer in range(trace.meta.layers)]
    found: dict[str, object] = {
        "refresh_rate": trace.refresh_rate,
        "refresh_by_layer": layers,
        "mean_drift": trace.mean_drift,
        "exchanged": _exchanged(trace),
    }
    for name in ("recall", "drift_exact"):
        if (value := getattr(trace, name)) is not None:
            found[name] = _mean(value, decided)
    if POLICIES[trace.meta.policy].thresholds:
        found |= _controller(trace, decided, fired)
    return found


def _controller(trace: Trace, decided: np.ndarray, fired: np.ndarray) -> dict[str, object]:
    """tau at the end; for a steered tau also how its rate came to rho, and what the identity says of it."""
    settings, found = settings_of(trace), {"tau_end": trace.tau_end}
    if trace.meta.policy == "threshold" or not settings.gain:
        return found
    rate = np.cumsum(fired.sum(1)[1:]) / np.cumsum(decided.sum(1)[1:])
    far = np.flatnonzero(np.abs(rate - settings.rho) > NEAR_RHO)  # of the decode steps, which count from 1
    settles = int(far[-1]) + 2 if far.size else 1
    found["settles_at"] = settles if settles + SETTLED <= trace.steps else None
    found["identity_rate"] = identity_rate(trace, settings)
    return found


def identity_rate(trace: Trace, settings: Settings) -> float:
    """The refresh rate by the controller identity: sum over updates of (f - rho) = ln(tau_end/tau0)/gain.

    A trace holds the tau that each decision used, before it moved; so the identity gives the updates up to
    the last, which is then added as it was. It holds as long as no limit of tau binds.
    """
    decided = trace.decided
    if settings.update == "layer":
        shares = trace.fire[decided].astype(float)
    else:
        steps = decided.any(1)
        shares = trace.fire[steps].sum(1, where=decided[steps]) / decided[steps].sum(1)
    moved = math.log(trace.tau_end / settings.tau0) / settings.gain
    return settings.rho + (moved + float(shares[-1]) - settings.rho) / len(shares)


def _exchanged(trace: Trace) -> float:
    """Entries per KV head and decision that were not selected at the step before."""
    entered = [one.entered[one.compared].sum() for one in exchanges(trace)][1:]
    return float(sum(entered) / (trace.decided.sum() * trace.meta.kv_heads))


def _staleness(trace: Trace) -> list[float | None] | None:
    shares = trace.staleness()
    if shares is None:
        return None
    pairs = zip(shares.tolist(), trace.meta.managed, strict=True)
    return [share if managed else None for share, managed in pairs]


def _graded(trace: Trace, task: Task) -> dict[str, object]:
    """How the text stands against what is known of the picture."""
    sample, text = task.sample, trace.text
    found: dict[str, object] = {}
    if (scene := scene_of(trace.meta)) is not None:
        graded = grade(scene, text)
        found |= {"objects": graded.total, "objects_right": graded.right}
    if sample.answers:
        found["accuracy"] = vqa_accuracy(text, sample.answers)
    if sample.references:
        found["references"] = list(sample.references)
        found["reference_rouge"] = max(rouge_l(text, one) for one in sample.references)
    return found


def _mean(value: np.ndarray, counted: np.ndarray) -> float | None:
    return float(value[counted].mean(dtype=np.float64)) if counted.any() else None
