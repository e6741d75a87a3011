"""Layer by layer: how long attention stays where it is, and how often a trigger asks for a refresh."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rcr_core.findings.evidence import Evidence, on_common
from rcr_core.findings.kinds import REFERENCE, TRIGGERED, title_of
from rcr_core.findings.measures import Rows, having, mean
from rcr_core.findings.row import Row
from rcr_core.findings.table import Column, Table

_COLUMNS = (
    Column("layer", "layer", "text"),
    Column(
        "staleness",
        "top entry stays",
        "share",
        "adjacent steps with the same most-attended prefix entry, uncompressed",
    ),
    *(
        Column(
            policy, f"refresh rate, {policy}", "share", f"steps in which the layer re-selected under {policy}"
        )
        for policy in TRIGGERED
    ),
)


def layers_table(evidence: Evidence) -> Table | None:
    """A row per layer and one for all of them; None where neither staleness nor a refresh rate is known."""
    stale = having(evidence.of(REFERENCE), "staleness")
    rates = refreshing(evidence)
    columns = [
        _means(stale, "staleness"),
        *(_means(rates.get(policy, {}), "refresh_by_layer") for policy in TRIGGERED),
    ]
    layers = max(len(column) for column in columns)
    if not layers:
        return None
    columns = [column or [None] * layers for column in columns]
    rows = [(str(layer), *(column[layer] for column in columns)) for layer in range(layers)]
    total = (
        _staleness(stale.values()),
        *(mean(rates.get(policy, {}), "refresh_rate") for policy in TRIGGERED),
    )
    note = (
        f"Means over images ({_counts(stale, rates)}). Staleness is of the uncompressed run's own "
        "attention: the lower the share, the sooner a selection goes stale. Refresh rates at "
        f"{evidence.base_text}. Layers are numbered from 0; a layer that keeps its whole prefix has no "
        "value."
    )
    table = Table("layers", "Layer by layer", _COLUMNS, (*rows, ("all layers", *total)), note)
    return table.trimmed()


def _counts(stale: Rows, rates: dict[str, Rows]) -> str:
    counts = {"uncompressed": len(stale)} | {title_of(policy): len(rows) for policy, rows in rates.items()}
    return ", ".join(f"{name}: {count}" for name, count in counts.items() if count)


def refreshing(evidence: Evidence) -> dict[str, Rows]:
    """The rows of the policies with a trigger that tell their refreshes by layer, on common images."""
    return on_common({policy: having(evidence.of(policy), "refresh_by_layer") for policy in TRIGGERED})


def by_layer(rows: Rows, name: str) -> list[list[float]]:
    """A number of each layer, by images; of a layer none where no image has it."""
    columns = zip(*(getattr(row, name) for row in having(rows, name).values()), strict=False)
    return [[value for value in column if value is not None] for column in columns]


def _means(rows: Rows, name: str) -> list[float | None]:
    return [_mean(values) for values in by_layer(rows, name)]


def _staleness(rows: Iterable[Row]) -> float | None:
    """Mean over images of the mean over layers."""
    return _mean([_mean(row.staleness) for row in rows])


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None
