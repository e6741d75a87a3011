"""The main comparison: how near each policy stays to the uncompressed run, and what it costs."""

from __future__ import annotations

import numpy as np

from rcr_core.findings.evidence import Evidence, uneven
from rcr_core.findings.kinds import ORACLE, REFERENCE
from rcr_core.findings.measures import (
    Rows,
    after_selection,
    average,
    gain,
    mean,
    mean_cost,
    numbers,
    objects_right,
    same_words,
)
from rcr_core.findings.table import Cell, Column, Table
from rcr_core.findings.wording import by_prefill, images

RIVALS = ("bacon", "threshold", "exact")

_COLUMNS = (
    Column("policy", "policy", "text"),
    Column("images", "images", "count"),
    Column("fidelity", "fidelity", "score", "ROUGE-L F1 against the uncompressed run"),
    *(
        Column(f"over_{rival}", f"over {rival}", "score", f"paired difference of fidelity to {rival}")
        for rival in RIVALS
    ),
    Column("refresh_rate", "refresh rate", "share", "layer-steps that re-selected"),
    Column(
        "mean_drift",
        "mean drift",
        "score",
        "attention mass outside the selection that stood before the decision, as the policy estimates it",
    ),
    Column("reads", "reads", "number", "vectors per KV head and layer-step, by formula at the realised rate"),
    Column("same_words", "same words", "share", "images with the very words of the uncompressed run"),
    Column("divergence", "diverges at step", "number", "median first different token, where there is one"),
    Column("objects_right", "objects right", "share", "objects of the scenes with all four attributes right"),
    Column("accuracy", "accuracy", "score", "of the short answer"),
)


def fidelity_table(evidence: Evidence, seed: int = 0) -> Table | None:
    """A row per policy at the base settings; None where nothing was run at them."""
    if not evidence.policies:
        return None
    found = evidence.main()
    rivals = {rival: found.get(rival, {}) for rival in RIVALS}
    rows = tuple(_row(policy, rows, rivals, seed) for policy, rows in found.items())
    note = (
        f"Settings: {evidence.base_text}. {_on_which(evidence, found)} Brackets: 95 % percentile bootstrap "
        f"intervals over images (10,000 resamples, seed {seed}). Differences are paired: on the images that "
        "both policies have. Reads are an upper bound: a candidate that is kept already needs none."
    )
    if ORACLE in found:
        note += " The oracle has read the uncompressed answer before it starts."
    return Table("fidelity", "Fidelity to the uncompressed run", _COLUMNS, rows, note).trimmed()


def _on_which(evidence: Evidence, found: dict[str, Rows]) -> str:
    """What the means are over, and whether they compare."""
    if uneven(found):
        return (
            "The policies have run on different images so far, each mean is over its own: only the paired "
            "differences compare."
        )
    count, most = len(next(iter(found.values()))), max(len(evidence.of(policy)) for policy in found)
    told = f"Means over {images(count)}{f' that all policies have, of {most}' if count < most else ''}."
    tokens = max(after_selection(rows) for rows in found.values())
    return told if tokens > 1 else f"{told} Note: {by_prefill(tokens)}."


def _row(policy: str, rows: Rows, rivals: dict[str, Rows], seed: int) -> tuple[Cell, ...]:
    diverging = numbers(rows, "diverges_at")
    diverging = diverging[diverging >= 0]
    return (
        policy,
        len(rows),
        average(rows, "fidelity", seed),
        *(None if rival == policy else gain(rows, others, seed=seed) for rival, others in rivals.items()),
        mean(rows, "refresh_rate"),
        mean(rows, "mean_drift"),
        mean_cost(rows, "reads"),
        None if policy == REFERENCE else same_words(rows),
        float(np.median(diverging)) if len(diverging) else None,
        objects_right(rows),
        average(rows, "accuracy", seed),
    )
