"""What each policy keeps, computes and reads: by formula and realised, in vectors and in bytes."""

from __future__ import annotations

import numpy as np

from rcr_core.findings.evidence import Evidence
from rcr_core.findings.kinds import EVERY_STEP, REFERENCE
from rcr_core.findings.measures import Rows, mean, mean_cost
from rcr_core.findings.row import Row
from rcr_core.findings.table import Cell, Column, Table

_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_MB = 1e6

_COLUMNS = (
    Column("policy", "policy", "text"),
    Column("images", "images", "count"),
    Column("resident", "resident", "number", "vectors on the device besides the live slots"),
    Column("detector", "detector", "number", "dot products to decide, in key-equivalents"),
    Column(
        "rate", "rate, formula", "share", "rho for RCR; for others the rate that they refresh at by design"
    ),
    Column("rescored", "rescored, formula", "number", "exact dot products on a refresh"),
    Column("reads", "reads, formula", "number", "vectors fetched from the prefix"),
    Column("rate_realised", "rate, realised", "share"),
    Column("rescored_realised", "rescored, realised", "number", "at the realised rate"),
    Column("reads_realised", "reads, realised", "number", "at the realised rate"),
    Column(
        "exchanged", "exchanged", "number", "newly selected entries: values fetched if only changes are read"
    ),
    Column("resident_mb", "resident (MB)", "number", "of the whole model"),
    Column("reads_mb", "reads, formula (MB a step)", "number", "of the whole model"),
    Column("reads_realised_mb", "reads, realised (MB a step)", "number", "of the whole model"),
)


def cost_table(evidence: Evidence) -> Table | None:
    """A row per policy at the base settings, for the shape of the model at hand."""
    found = evidence.main()
    if not found:
        return None
    rows = tuple(_row(policy, rows) for policy, rows in found.items())
    row = _evicting(found)
    prefix = np.mean([row.shape["prefix_length"] for rows in found.values() for row in rows.values()])
    width = row.shape["head_dim"]
    note = (
        f"Per KV head and layer-step, in vectors of width {width}; prefix of {prefix:.0f} entries on "
        f"average, {_layers(row)} layers{_that_evict(row)}, {row.shape['kv_heads']} KV heads, "
        f"{evidence.dtype}; "
        f"{evidence.base_text}. At this width a sketch holds {_part(row, 'rank')} of a key, and InfiniGen "
        f"scores with {_part(row, 'channels')} of its channels. Reads by formula are an upper bound, also "
        "for the policies that re-select at every step: entries that are kept already need no fetch. The "
        "masked merge reads candidates in every layer, whatever the rate; a deployment has to make the "
        "read wait for the trigger. The window and generated tokens are free for all. Detector arithmetic "
        "counts one query per KV head. The full cache holds entries, each a key and a value; in MB both "
        "count. The fixed threshold has no rate by design, so its formula takes the realised one. MB is "
        "10^6 bytes."
    )
    return Table("cost", "Cost", _COLUMNS, rows, note).trimmed()


def _row(policy: str, rows: Rows) -> tuple[Cell, ...]:
    rate = _rate(policy, rows)
    vector = _vector_mb(next(iter(rows.values())))
    resident = mean_cost(rows, "resident")
    reads, realised = mean_cost(rows, "reads", rate), mean_cost(rows, "reads")
    return (
        policy,
        len(rows),
        resident,
        mean_cost(rows, "detector"),
        rate,
        mean_cost(rows, "rescored", rate),
        reads,
        mean(rows, "refresh_rate"),
        mean_cost(rows, "rescored"),
        realised,
        mean(rows, "exchanged"),
        _times(resident, vector, 2 if policy == REFERENCE else 1),
        _times(reads, vector),
        _times(realised, vector),
    )


def _rate(policy: str, rows: Rows) -> float | None:
    """The refresh rate that the formula takes."""
    if policy == "rcr":
        return float(next(iter(rows.values())).settings["rho"])
    if policy == "threshold":
        return mean(rows, "refresh_rate")
    return 1.0 if policy in EVERY_STEP else 0.0


def _vector_mb(row: Row) -> float | None:
    """A vector in every KV head of every layer that counts, in MB; None for a dtype of unknown width."""
    width = _BYTES.get(row.dtype.removeprefix("torch."))
    if width is None:
        return None
    return row.shape["head_dim"] * width * _layers(row) * row.shape["kv_heads"] / _MB


def _layers(row: Row) -> int:
    """The layers that evict: those that take decisions, all where the policy takes none."""
    if row.refresh_by_layer is None:
        return row.shape["layers"]
    return sum(rate is not None for rate in row.refresh_by_layer)


def _evicting(found: dict[str, Rows]) -> Row:
    """A row that tells how many layers evict, any where none does."""
    rows = [row for columns in found.values() for row in columns.values()]
    return next((row for row in rows if row.refresh_by_layer is not None), rows[0])


def _that_evict(row: Row) -> str:
    return "" if row.refresh_by_layer is None else " that evict"


def _part(row: Row, setting: str) -> str:
    width = row.shape["head_dim"]
    return f"{min(row.settings[setting], width)}/{width}"


def _times(vectors: float | None, vector: float | None, each: int = 1) -> float | None:
    return None if vectors is None or vector is None else vectors * vector * each
