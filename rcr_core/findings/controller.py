"""How rate control comes to its target: the realised rate, tau at the end, and the controller identity."""

from __future__ import annotations

import numpy as np

from rcr_core.findings.evidence import Evidence, on_common
from rcr_core.findings.measures import Rows, having, mean, median, numbers
from rcr_core.findings.table import Cell, Column, Table

_COLUMNS = (
    Column("update", "tau moves", "text", "after each layer, or once a step"),
    Column("images", "images", "count"),
    Column("rho", "rho", "share", "target refresh rate"),
    Column("refresh_rate", "refresh rate", "share", "mean over images"),
    Column("lowest_rate", "lowest", "share", "of an image"),
    Column("highest_rate", "highest", "share", "of an image"),
    Column(
        "identity_rate",
        "rate by identity",
        "share",
        "rho + (ln(tau_end / tau0) / gain + f_last − rho) / updates, mean; tau_end is the threshold that the "
        "last decision used",
    ),
    Column("identity_gap", "largest difference", "share", "of an image's rate to that of the identity"),
    Column("tau0", "tau0", "number"),
    Column("tau_end", "tau at the end", "number", "median"),
    Column("tau_low", "5 %", "number", "of images end below this tau"),
    Column("tau_high", "95 %", "number", "of images end below this tau"),
    Column(
        "settles_at",
        "settles at step",
        "number",
        "from there to the end, for at least 10 steps, within 5 points of rho; median of those that do",
    ),
    Column(
        "settles",
        "settle",
        "share",
        "images whose running rate is within 5 points of rho for the last 10 steps or more",
    ),
)


def controller_table(evidence: Evidence) -> Table | None:
    """A row per update rule of tau, on the images that all of them have."""
    varied = evidence.varied("rcr", "update")
    columns = on_common(
        {update: having(rows, "refresh_rate", "tau_end") for (update,), rows in varied.items()}
    )
    rows = tuple(_row(update, found, evidence.base) for update, found in columns.items())
    if not rows:
        return None
    note = (
        f"RCR at {evidence.base_text}, on common images. The identity: an update adds gain x (f − rho) to ln "
        "tau, so that as long as no limit of tau binds the rate is rho + (ln(tau_end / tau0) / gain + f_last "
        "− rho) / updates, tau_end being the threshold that the last decision used and f_last that "
        "decision's own share. The more updates a run has, the less the same way of tau moves its rate from "
        "rho: there are more where tau moves after every layer, fewer in short runs and where it moves once "
        "a step."
    )
    return Table("controller", "Rate control", _COLUMNS, rows, note).trimmed()


def _row(update: str, rows: Rows, base: dict) -> tuple[Cell, ...]:
    rate = numbers(rows, "refresh_rate")
    low, high = np.quantile(numbers(rows, "tau_end"), (0.05, 0.95))
    return (
        update,
        len(rows),
        base["rho"],
        float(rate.mean()),
        float(rate.min()),
        float(rate.max()),
        mean(rows, "identity_rate"),
        _identity_gap(rows),
        base["tau0"],
        median(rows, "tau_end"),
        float(low),
        float(high),
        median(rows, "settles_at"),
        len(having(rows, "settles_at")) / len(rows),
    )


def _identity_gap(rows: Rows) -> float | None:
    found = having(rows, "identity_rate").values()
    return max((abs(row.identity_rate - row.refresh_rate) for row in found), default=None)
