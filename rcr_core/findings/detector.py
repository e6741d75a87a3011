"""The detector over sketch ranks: the true top S among its candidates, and the bias of its drift."""

from __future__ import annotations

from rcr_core.findings.evidence import Evidence, on_common
from rcr_core.findings.measures import Rows, average, excess, having, mean
from rcr_core.findings.table import Cell, Column, Table
from rcr_core.settings import Settings

_COLUMNS = (
    Column("rank", "sketch rank", "count"),
    Column("images", "images", "count"),
    Column("recall", "recall", "share", "of the true top S among the candidates"),
    Column("drift_estimate", "drift, estimate", "score", "mean over decisions and images"),
    Column("drift_exact", "drift, exact", "score", "mean over decisions and images"),
    Column("bias", "bias", "score", "estimate − exact, paired by image"),
    Column("refresh_rate", "refresh rate", "share", "layer-steps that re-selected"),
    Column("fidelity", "fidelity", "score", "ROUGE-L F1 against the uncompressed run"),
)


def detector_table(evidence: Evidence, seed: int = 0) -> Table | None:
    """RCR at every sketch rank that was run with diagnostics, on common images; None where none was."""
    varied = evidence.varied("rcr", "rank")
    needed = ("recall", "drift_exact", "mean_drift")
    found = on_common({rank: having(rows, *needed) for (rank,), rows in varied.items()})
    if not found:
        return None
    select = evidence.base["select"]
    candidates = Settings.from_dict(evidence.base).candidate_count
    rows = tuple(_row(rank, rows, seed) for rank, rows in found.items())
    note = (
        f"RCR with diagnostics at {evidence.base_text}: recall of the true top {select} among {candidates} "
        "candidates, and drift by the sketch against exact drift, over the decisions of a run. Every rank "
        "decodes its own run: where their texts part, the decisions are others. Where the bias is below 0 "
        "the sketch misses evicted mass. Tau is steered by the estimate, so look at the refresh rates for "
        "what a bias comes to."
    )
    return Table("detector", "Detector", _COLUMNS, rows, note).trimmed()


def _row(rank: int, rows: Rows, seed: int) -> tuple[Cell, ...]:
    return (
        rank,
        len(rows),
        average(rows, "recall", seed),
        mean(rows, "mean_drift"),
        mean(rows, "drift_exact"),
        excess(rows, "mean_drift", "drift_exact", seed),
        mean(rows, "refresh_rate"),
        average(rows, "fidelity", seed),
    )
