"""Figures of how RCR behaves: refreshes and staleness by layer, the detector, the controller."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from rcr_core.findings import Evidence, Interval, Row
from rcr_core.findings.detector import detector_table
from rcr_core.findings.evidence import on_common
from rcr_core.findings.kinds import REFERENCE
from rcr_core.findings.layers import by_layer, refreshing
from rcr_core.findings.measures import having
from viz.frame import every
from viz.palette import GRID, PURPLE
from viz.palette import REFERENCE as GREY
from viz.study.frames import (
    RATE,
    add_diagonal,
    add_level,
    add_means,
    hover,
    interval_of,
    mean_of,
    over,
    plain_frame,
    told,
    two_panels,
)
from viz.study.looks import Look, look_of
from viz.study.names import title_of

_PER_CENT = ".0%"
_UNIT = [0, 1.04]
_UPDATES = {"layer": Look(look_of("rcr").colour, "circle"), "step": Look(PURPLE, "diamond-open")}


def layers_figure(evidence: Evidence) -> go.Figure | None:
    """How often each layer's most-attended prefix entry stays the same, and how often the layer refreshes."""
    still = _by_layer(evidence.of(REFERENCE), "staleness")
    rates = {policy: _by_layer(rows, "refresh_by_layer") for policy, rows in refreshing(evidence).items()}
    fired = {policy: means for policy, means in rates.items() if means}
    if not still and not fired:
        return None
    figure = two_panels(
        "Staleness and refreshes by layer",
        "Above: share of adjacent steps of the uncompressed run with the same most-attended prefix entry. "
        "Below: share of a layer's decisions that refresh; dashed, the target rate. Bars: 95 % intervals "
        "over images.",
        "layer",
        ("top entry stays", RATE),
        upper=0.5,
    )
    layers = 1 + max(layer for means in (still, *fired.values()) for layer in means)
    figure.update_xaxes(dtick=every(layers))
    figure.update_layout(yaxis={"range": _UNIT, "tickformat": _PER_CENT})
    figure.update_layout(yaxis2={"range": _UNIT, "tickformat": _PER_CENT})
    if still:
        points = _points(still, "Uncompressed, layer", "top entry stays")
        add_means(figure, "uncompressed run", Look(GREY, "circle"), points, showlegend=False)
    for policy, means in fired.items():
        points = _points(means, f"{title_of(policy)}, layer", "refresh rate")
        add_means(figure, title_of(policy), look_of(policy), points, yaxis="y2")
    if "rcr" in fired:
        add_level(figure, evidence.base["rho"], "rho", axis="y2")
    return figure


def detector_figure(evidence: Evidence) -> go.Figure | None:
    """Recall of the candidates and bias of the drift estimate over the rank of the sketch."""
    table = detector_table(evidence)
    if table is None or len(table.rows) < 2:
        return None
    ranks, images = table.column("rank"), table.column("images")
    figure = two_panels(
        "Detector over the rank of its sketch",
        "Above: share of the truly most attended entries that are among the candidates. Below: estimated "
        "less exact drift; below 0 the estimate is too low. Bars: 95 % intervals over images.",
        "rank of the sketch (log scale)",
        ("recall", "bias of drift"),
        upper=0.5,
    )
    figure.update_xaxes(type="log", tickvals=ranks, ticktext=[f"{rank:g}" for rank in ranks])
    figure.update_layout(yaxis={"tickformat": _PER_CENT}, yaxis2={"rangemode": "tozero"})
    for name, kind, axis in (("recall", "share", "y"), ("bias", "score", "y2")):
        points = [
            (rank, mean, hover(f"rank {rank:g}", told(name, mean, kind), over(mean)))
            for rank, cell, count in zip(ranks, table.column(name), images, strict=True)
            if (mean := interval_of(cell, count))
        ]
        add_means(figure, name, look_of("rcr"), points, yaxis=axis, showlegend=False)
    add_level(figure, 0, "", axis="y2")
    return figure


def controller_figure(evidence: Evidence) -> go.Figure | None:
    """Realised refresh rate against the rate that the controller identity gives, an image a mark."""
    needed = ("identity_rate", "refresh_rate")
    common = on_common({update: having(evidence.of("rcr", update=update), *needed) for update in _UPDATES})
    found = {update: list(rows.values()) for update, rows in common.items() if rows}
    if not found:
        return None
    everything = [value for rows in found.values() for row in rows for value in _rates(row)]
    rho = evidence.base["rho"]
    low, high = min(*everything, rho), max(*everything, rho)
    spare = max(0.06 * (high - low), 0.004)
    figure = plain_frame(
        "The controller and its identity",
        "Realised rate against rho + (ln(tau_end / tau0) / gain + f_last − rho) / updates, an image a mark; "
        "tau_end is the threshold that the last decision used, f_last its own share. On the dashed diagonal "
        "the two agree; the level line is rho.",
        "refresh rate by the identity",
        "realised refresh rate",
        420,
    )
    span = {"range": [low - spare, high + spare], "tickformat": ".0%" if high - low > 0.08 else ".1%"}
    figure.update_xaxes(**span)
    figure.update_yaxes(**span)
    add_diagonal(figure, low - spare, high + spare)
    add_level(figure, rho, "rho")
    for update, rows in found.items():
        _agreement(figure, update, rows)
    return figure


def _agreement(figure: go.Figure, update: str, rows: Sequence[Row]) -> None:
    look = _UPDATES[update]
    texts = [
        hover(
            f"{row.sample}, update={update}",
            told("realised", row.refresh_rate, "share"),
            told("by the identity", row.identity_rate, "share"),
            told("tau at the end", row.tau_end, "number"),
        )
        for row in rows
    ]
    figure.add_scatter(
        x=[row.identity_rate for row in rows],
        y=[row.refresh_rate for row in rows],
        mode="markers",
        name=f"update={update}",
        marker={"color": look.colour, "symbol": look.symbol, "size": 8, "line": {"color": GRID, "width": 1}},
        customdata=[[row.key, row.sample] for row in rows],
        hovertext=texts,
        hoverinfo="text",
    )


def _rates(row: Row) -> tuple[float, float]:
    return row.identity_rate, row.refresh_rate


def _by_layer(rows: dict[str, Row], name: str) -> dict[int, Interval]:
    """Mean over images of each layer's share; layers that have none are left out."""
    return {layer: mean for layer, values in enumerate(by_layer(rows, name)) if (mean := mean_of(values))}


def _points(means: dict[int, Interval], head: str, what: str) -> list[tuple[float, Interval, str]]:
    return [
        (layer, mean, hover(f"{head} {layer}", told(what, mean, "share"), over(mean)))
        for layer, mean in means.items()
    ]
