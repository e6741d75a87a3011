"""The figure of what fidelity costs: all policies by the vectors that they read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from rcr_core.findings import Evidence
from rcr_core.findings.kinds import REFERENCE
from rcr_core.findings.pareto import Point, points
from viz.palette import REFERENCE as GREY
from viz.study.frames import (
    FIDELITY,
    add_label,
    add_level,
    bars,
    hover,
    over,
    plain_frame,
    plot_height,
    told,
)
from viz.study.labels import LINE, Box, placed
from viz.study.looks import look_of
from viz.study.names import short_title, title_of

_NARROWEST = 240  # pixels of the plot on a small phone
_NOTHING = 0.55  # decades that a policy without reads stands left of the fewest reads
_MARGIN = 0.12  # decades
_FAINT = 0.45


def pareto_figure(evidence: Evidence) -> go.Figure | None:
    """Fidelity over reads: every policy, RCR over its target rate, and each policy over the budget."""
    found = points(evidence)
    main = [point for point in found if not point.settings]
    if not main:
        return None
    curve = _swept(found, "rcr", "rho")
    budgets = [_swept(found, point.policy, "select") for point in main]
    scale = _Scale([*main, *curve, *(one for line in budgets for one in line)])
    figure = plain_frame(
        "What fidelity costs",
        "Up and to the left is better. Solid curve: RCR over the target rate rho; faint lines: each policy "
        "over the budget. Policies that read nothing stand at 0. Bars: 95 % intervals over images.",
        "vectors read per KV head and layer-step",
        FIDELITY,
        520,
    )
    figure.update_xaxes(range=scale.range, **scale.ticks())
    figure.update_yaxes(range=[0, 1.06])
    add_level(figure, 1, "")
    _direction(figure)
    for line in budgets:
        _line(figure, scale, line, "select", faint=True)
    _line(figure, scale, curve, "rho")
    ordered = sorted(main, key=lambda point: look_of(point.policy).loud)
    for point in ordered:
        _mark(figure, scale, point)
    _label(figure, scale, ordered[::-1], [curve, *budgets])
    _apart(figure, scale)
    return figure


class _Scale:
    """A log scale that has a place for 0, left of all else."""

    def __init__(self, drawn: Sequence[Point]):
        there = [math.log10(point.reads) for point in drawn if point.reads > 0]
        self.low, self.high = (min(there), max(there)) if there else (0.0, 1.0)
        self.zero = self.low - _NOTHING
        self.range = [self.zero - _MARGIN, self.high + _MARGIN]

    def at(self, reads: float) -> float:
        return math.log10(reads) if reads > 0 else self.zero

    @property
    def broken(self) -> float:
        """Where the axis is, between no reads and the fewest."""
        return (self.zero + self.low) / 2

    def pixel_of(self, at: float) -> float:
        """Pixels from the left of the narrowest plot."""
        low, high = self.range
        return (at - low) / (high - low) * _NARROWEST

    def ticks(self) -> dict:
        """0, and 1, 2, 5, 10 and so on."""
        steps = [
            one * 10**decade
            for decade in range(math.floor(self.low), math.ceil(self.high) + 1)
            for one in (1, 2, 5)
        ]
        inside = [step for step in steps if self.low - _MARGIN <= math.log10(step) <= self.high + _MARGIN]
        return {
            "tickvals": [self.zero, *map(math.log10, inside)],
            "ticktext": ["0", *(f"{x:g}" for x in inside)],
        }


def _swept(found: Sequence[Point], policy: str, knob: str) -> list[Point]:
    """The points of a policy over one setting, by reads; empty where there is one only."""
    line = [point for point in found if point.policy == policy and set(point.settings) <= {knob}]
    line.sort(key=lambda point: (point.reads, point.fidelity.mean))
    return line if len(line) > 1 else []


def _told(point: Point) -> str:
    return hover(
        f"{title_of(point.policy)}, {point.label}",
        told("fidelity", point.fidelity),
        told("reads", point.reads, "number"),
        over(point.fidelity),
    )


def _line(figure: go.Figure, scale: _Scale, line: list[Point], knob: str, faint: bool = False) -> None:
    """A policy over one setting."""
    if not line:
        return
    look = look_of(line[0].policy)
    figure.add_scatter(
        x=[scale.at(point.reads) for point in line],
        y=[point.fidelity.mean for point in line],
        mode="lines+markers",
        name=f"{title_of(line[0].policy)} over {knob}",
        line={"color": look.colour, "width": 1} if faint else look.line,
        marker={"size": 4 if faint else 6, "color": look.colour, "symbol": look.symbol},
        opacity=_FAINT if faint else 1,
        customdata=[point.reads for point in line],
        showlegend=False,
        hovertext=[_told(point) for point in line],
        hoverinfo="text",
    )


def _mark(figure: go.Figure, scale: _Scale, point: Point) -> None:
    look = look_of(point.policy)
    figure.add_scatter(
        x=[scale.at(point.reads)],
        y=[point.fidelity.mean],
        error_y=look.error(*bars([point.fidelity])),
        mode="markers",
        name=title_of(point.policy),
        marker=look.marker,
        showlegend=False,
        customdata=[point.reads],
        hovertext=[_told(point)],
        hoverinfo="text",
    )


def _label(figure: go.Figure, scale: _Scale, main: Sequence[Point], lines: Sequence[Sequence[Point]]) -> None:
    """The name of each policy beside its mark, off the lines."""
    low, high = figure.layout.yaxis.range
    tall = plot_height(figure) / (high - low)

    def place_of(point: Point) -> tuple[float, float]:
        return scale.pixel_of(scale.at(point.reads)), (point.fidelity.mean - low) * tall

    marks = [(*place_of(point), short_title(point.policy)) for point in main]
    level = (1 - low) * tall
    paths = [[(0, level), (_NARROWEST, level)], *([place_of(point) for point in line] for line in lines)]
    named = Box.above(scale.pixel_of(scale.broken), level, title_of(REFERENCE))
    places = placed(marks, _NARROWEST, paths, [named], plot_height(figure))
    for point, (*_, name), place in zip(main, marks, places, strict=True):
        text = f"<b>{name}</b>" if look_of(point.policy).loud else name
        far = abs(place.up) > LINE / 2
        add_label(figure, scale.at(point.reads), point.fidelity.mean, text, place.side, place.up, far)


def _apart(figure: go.Figure, scale: _Scale) -> None:
    """Where the axis is broken between no reads and the fewest. No mark is there: the level can be named."""
    at = scale.broken
    line = {"color": GREY, "width": 1, "dash": "dot"}
    figure.add_shape(type="line", x0=at, x1=at, yref="paper", y0=0, y1=0.9, line=line, layer="below")
    figure.add_annotation(text=title_of(REFERENCE), x=at, y=1, yanchor="bottom", showarrow=False)


def _direction(figure: go.Figure) -> None:
    """An arrow to where more fidelity costs less."""
    figure.add_annotation(
        text="better",
        xref="paper",
        yref="paper",
        x=0.5,
        y=0.08,
        ax=30,
        ay=22,
        showarrow=True,
        arrowhead=2,
        arrowsize=1.2,
        arrowwidth=1.2,
        arrowcolor=GREY,
    )
