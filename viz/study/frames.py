"""The frame that every figure of a study shares, and its marks: means with their 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from rcr_core.findings import Interval, Row
from rcr_core.findings.statistics import interval
from rcr_core.findings.table import Cell, Kind
from rcr_core.findings.wording import images
from viz.frame import framed
from viz.palette import GRID, REFERENCE
from viz.study.looks import Look
from viz.study.numbers import shown

FIDELITY = "fidelity (ROUGE-L F1)"
RATE = "refresh rate"
_MANY = 99  # plotly chooses the ticks
_GAP = 0.08  # of the height, between two panels
_TOP, _BOTTOM, _LEFT = 84, 52, 64  # pixels around the plot, with the title


def plain_frame(title: str, caption: str, x_title: str, y_title: str, height: int = 400) -> go.Figure:
    """A figure without traces. `caption` says how to read it, and lies in the figure's meta."""
    figure = framed(x_title, y_title, _MANY)
    figure.update_layout(
        title={
            "text": escape(title, quote=False),
            "x": 0,
            "xref": "paper",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12},
        },
        meta={"caption": caption},
        margin={"t": _TOP, "b": _BOTTOM, "l": _LEFT, "r": 20},
        height=height,
        hovermode="closest",
    )
    figure.update_xaxes(zeroline=False)
    figure.update_yaxes(zeroline=False)
    return figure


def plot_height(figure: go.Figure) -> float:
    """Pixels from the bottom of the plot to its top, where no legend takes room."""
    margin = figure.layout.margin
    return figure.layout.height - margin.t - margin.b


def two_panels(
    title: str,
    caption: str,
    x_title: str,
    y_titles: tuple[str, str],
    height: int = 460,
    upper: float = 0.6,
) -> go.Figure:
    """Two plots above each other over one x axis; `upper` is the upper one's share of the height.

    Traces of the lower plot have yaxis="y2".
    """
    figure = plain_frame(title, caption, x_title, y_titles[0], height)
    below = 1 - upper - _GAP / 2
    figure.update_layout(
        yaxis={"domain": [below + _GAP, 1]},
        yaxis2={**figure.layout.yaxis.to_plotly_json(), "title": y_titles[1], "domain": [0, below]},
    )
    figure.update_xaxes(anchor="y2")
    return figure


def interval_of(cell: Cell, images: Cell) -> Interval | None:
    """A cell of a table as a mean over so many images; one without ends has no interval."""
    if cell is None or isinstance(cell, Interval):
        return cell
    return Interval(float(cell), math.nan, math.nan, int(images))


def fidelity_of(rows: dict[str, Row]) -> Interval | None:
    """Mean fidelity of the runs that have one."""
    return mean_of([row.fidelity for row in rows.values()])


def rate_of(rows: dict[str, Row]) -> Interval | None:
    """Mean refresh rate of the runs that take decisions."""
    return mean_of([row.refresh_rate for row in rows.values()])


def mean_of(values: Sequence[float | None]) -> Interval | None:
    """Mean with its interval over the values that are there; None where none is."""
    there = [value for value in values if value is not None]
    return interval(there) if there else None


def add_means(
    figure: go.Figure,
    name: str,
    look: Look,
    points: Sequence[tuple[float, Interval, str]],
    mode: str = "lines+markers",
    **options,
) -> None:
    """A curve through (x, mean with interval, hover text); a point without interval has no bar."""
    means = [mean for _, mean, _ in points]
    figure.add_scatter(
        x=[x for x, _, _ in points],
        y=[mean.mean for mean in means],
        error_y=look.error(*bars(means)),
        name=name,
        mode=mode,
        marker=look.marker,
        line=look.line,
        hovertext=[text for _, _, text in points],
        hoverinfo="text",
        **options,
    )


def bars(means: Sequence[Interval]) -> tuple[list[float | None], list[float | None]]:
    """Lengths of error bars below and above the means."""
    return (
        [None if math.isnan(one.low) else one.mean - one.low for one in means],
        [None if math.isnan(one.high) else one.high - one.mean for one in means],
    )


def add_level(
    figure: go.Figure, level: float, name: str, look: Look | None = None, axis: str = "y", left: bool = False
) -> None:
    """A horizontal line that the other marks are held against, named at its right end, or `left`."""
    colour = look.colour if look else REFERENCE
    line = {"color": colour, "width": 1.5, "dash": "dash"}
    figure.add_shape(type="line", xref="paper", x0=0, x1=1, yref=axis, y0=level, y1=level, line=line)
    if name:
        figure.add_annotation(
            text=name,
            xref="paper",
            x=0 if left else 1,
            xanchor="left" if left else "right",
            yref=axis,
            y=level,
            yanchor="bottom",
            showarrow=False,
        )


def add_diagonal(figure: go.Figure, low: float, high: float) -> None:
    """The line on which both axes say the same."""
    line = {"color": REFERENCE, "width": 1.5, "dash": "dash"}
    figure.add_shape(type="line", x0=low, y0=low, x1=high, y1=high, line=line, layer="below")


def add_label(figure: go.Figure, x: float, y: float, text: str, side: int, up: float, far: bool) -> None:
    """A label beside a mark at (x, y): `side` +1 right of it, -1 left, `up` pixels higher; a line if far."""
    figure.add_annotation(
        x=x,
        y=y,
        text=text,
        ax=9 * side,
        ay=-up,
        xanchor="left" if side > 0 else "right",
        yanchor="middle",
        showarrow=True,
        arrowhead=0,
        arrowwidth=1,
        arrowcolor=REFERENCE if far else GRID,
        standoff=5,
        borderpad=0,
    )


def hover(head: str, *parts: str) -> str:
    """A hover text: its head in bold, then a line each. Names of samples and policies may hold any text."""
    lines = [f"<b>{escape(head, quote=False)}</b>", *(escape(part, quote=False) for part in parts if part)]
    return "<br>".join(lines)


def told(what: str, mean: Cell, kind: Kind = "score") -> str:
    """A line of a hover text."""
    return f"{what} {shown(mean, kind)}" if mean is not None else ""


def over(mean: Interval) -> str:
    """How many images a mean is over."""
    return images(mean.count)
