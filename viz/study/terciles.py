"""The figure of the terciles: what drift does to the fixed threshold, to RCR and to exact re-selection."""

from __future__ import annotations

import plotly.graph_objects as go

from rcr_core.findings import Evidence, Interval
from rcr_core.findings.kinds import TRIGGERED
from rcr_core.findings.table import Table
from rcr_core.findings.terciles import terciles_table
from rcr_core.findings.wording import images
from viz.study.frames import FIDELITY, RATE, add_means, hover, interval_of, told, two_panels
from viz.study.looks import look_of
from viz.study.names import title_of
from viz.study.numbers import shown

_COMPARED = ("threshold", "rcr", "exact")
_APART = 0.2  # of a category's width, between two policies


def terciles_figure(evidence: Evidence) -> go.Figure | None:
    """Fidelity in each third of the images by mean drift, and the refresh rates beneath."""
    table = terciles_table(evidence)
    if table is None:
        return None
    figure = two_panels(
        "Thirds of the images by drift",
        "Images sorted by their mean drift under RCR. Exact re-selection refreshes in every step. Bars: 95 % "
        "intervals within the third.",
        "third of the images by mean drift",
        (FIDELITY, RATE),
    )
    at = list(range(len(table.rows)))
    figure.update_xaxes(tickvals=at, ticktext=_names(table), range=[-0.5, len(at) - 0.5], showgrid=False)
    figure.update_layout(yaxis2={"range": [0, 1.04], "tickformat": ".0%"})
    there = [column.id for column in table.columns]
    for place, policy in enumerate(_COMPARED):
        shift = _APART * (place - 1)
        if policy in there:
            points = _points(table, policy, policy, "fidelity", "score", shift)
            add_means(figure, title_of(policy), look_of(policy), points, mode="markers")
        if policy in TRIGGERED and f"rate_{policy}" in there:
            points = _points(table, policy, f"rate_{policy}", "refresh rate", "share", shift)
            add_means(
                figure,
                title_of(policy),
                look_of(policy),
                points,
                mode="markers",
                yaxis="y2",
                showlegend=False,
            )
    return figure


def _names(table: Table) -> list[str]:
    ranges = zip(
        table.column("third"), table.column("lowest_drift"), table.column("highest_drift"), strict=True
    )
    return [f"{third}<br>{shown(low, 'score')} to {shown(high, 'score')}" for third, low, high in ranges]


def _points(
    table: Table, policy: str, column: str, what: str, kind: str, shift: float
) -> list[tuple[float, Interval, str]]:
    """A point a third; a mean without an interval is one whose ends are unknown."""
    points = []
    for at, (third, count, cell) in enumerate(
        zip(table.column("third"), table.column("images"), table.column(column), strict=True)
    ):
        if (mean := interval_of(cell, count)) is None:
            continue
        text = hover(f"{title_of(policy)}, {third} drift", told(what, mean, kind), images(count))
        points.append((at + shift, mean, text))
    return points
