"""Figures of the sweeps, from their tables: threshold, target rate, budget, and budget by target rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from rcr_core.findings import Evidence, Interval, Table
from rcr_core.findings.sweeps import budgets_table, grid_table, rates_table, thresholds_table
from rcr_core.findings.table import Cell
from viz.palette import GRID, SEQUENTIAL
from viz.palette import REFERENCE as GREY
from viz.study.frames import (
    FIDELITY,
    RATE,
    add_level,
    add_means,
    hover,
    interval_of,
    over,
    plain_frame,
    plot_height,
    told,
    two_panels,
)
from viz.study.labels import LINE, spread
from viz.study.looks import look_of
from viz.study.names import short_title, title_of
from viz.study.numbers import shown

_UNIT = [0, 1.04]
_PER_CENT = ".0%"
_NARROWEST = 240  # pixels of the plot on a small phone
_DIGIT, _AIR = 7, 4  # pixels, of a tick's name and beside it
_BESIDE = 0.02  # of that width, from a curve to its name
_NAMES = 0.36  # of the width of a budget figure, for the names at the right ends on the narrowest page
_MEASURES = (("fidelity", "y"), ("refresh_rate", "y2"))

Run = dict[str, Cell]  # a row of a table, by column
Curve = list[tuple[float, Interval]]


def thresholds_figure(evidence: Evidence) -> go.Figure | None:
    """Fidelity and refresh rate of the fixed threshold over tau0, RCR's own level beside them."""
    table = thresholds_table(evidence)
    if table is None:
        return None
    runs = _runs(table)
    figure = two_panels(
        "Fixed threshold over tau0",
        f"Dashed: RCR at rho {shown(evidence.base['rho'], 'share')}, on the same images. Below, what each of "
        "them refreshes. Bars: 95 % intervals over images.",
        "tau0, the fixed threshold (log scale)",
        (FIDELITY, RATE),
    )
    swept = [run for run in runs if run["policy"] == "threshold"]
    figure.update_xaxes(type="log", **_ticks([run["tau0"] for run in swept]))
    for measure, axis in _MEASURES:
        _sweep(figure, "threshold", swept, "tau0", measure, axis)
        means = [mean.mean for run in swept if (mean := interval_of(run.get(measure), run["images"]))]
        for run in runs:
            if run["policy"] == "rcr" and (level := interval_of(run.get(measure), run["images"])):
                # Named where the curve is further away.
                left = bool(means) and abs(means[0] - level.mean) > abs(means[-1] - level.mean)
                add_level(figure, level.mean, title_of("rcr"), look_of("rcr"), axis, left)
    figure.update_layout(yaxis2={"range": _UNIT, "tickformat": _PER_CENT})
    return figure


def rates_figure(evidence: Evidence) -> go.Figure | None:
    """RCR's fidelity and realised refresh rate over the target rate rho."""
    table = rates_table(evidence)
    if table is None:
        return None
    runs = _runs(table)
    figure = two_panels(
        "RCR over the target rate",
        "Above, fidelity at each target; below, the rate that was realised: on the dashed diagonal it is "
        "the target. Bars: 95 % intervals over images.",
        "rho, the target refresh rate",
        (FIDELITY, f"realised {RATE}"),
    )
    figure.update_xaxes(tickformat=_PER_CENT)
    figure.update_layout(yaxis2={"tickformat": _PER_CENT, "rangemode": "tozero"})
    low, high = runs[0]["rho"], runs[-1]["rho"]
    line = {"color": GREY, "width": 1.5, "dash": "dash"}
    figure.add_shape(type="line", yref="y2", x0=low, x1=high, y0=low, y1=high, line=line, layer="below")
    for measure, axis in _MEASURES:
        _sweep(figure, "rcr", runs, "rho", measure, axis)
    return figure


def budgets_figure(evidence: Evidence) -> go.Figure | None:
    """Fidelity over the budget, a curve per policy, named at its end."""
    table = budgets_table(evidence)
    if table is None:
        return None
    curves = {run["policy"]: _by_budget(run) for run in _runs(table)}
    curves = {policy: curve for policy, curve in curves.items() if len(curve) > 1}
    if not curves:
        return None
    selects = sorted({select for curve in curves.values() for select, _ in curve})
    figure = plain_frame(
        "Fidelity over the budget",
        "Prefix entries kept per KV head, besides the window. Bars: 95 % intervals over images.",
        "entries kept per KV head (select, log scale)",
        FIDELITY,
        480,
    )
    low, high = math.log10(selects[0]), math.log10(selects[-1])
    room = [low - 0.04, high + _NAMES * (high - low)]
    figure.update_xaxes(type="log", range=room, **_ticks(selects, 1 / (1 + _NAMES)))
    figure.update_yaxes(range=_UNIT)
    for policy in sorted(curves, key=lambda one: look_of(one).loud):
        points = [
            (select, mean, hover(f"{title_of(policy)}, select {select}", told("fidelity", mean), over(mean)))
            for select, mean in curves[policy]
        ]
        add_means(figure, title_of(policy), look_of(policy), points, showlegend=False)
    _name_ends(figure, curves)
    return figure


def grid_figure(evidence: Evidence) -> go.Figure | None:
    """Mean fidelity of RCR by budget and target rate; BACON, which never refreshes, as the first column."""
    table = grid_table(evidence)
    if table is None:
        return None
    heads = [
        column.id.removeprefix("fidelity_") for column in table.columns if column.id.startswith("fidelity_")
    ]
    runs = _runs(table)
    means = [[interval_of(run[f"fidelity_{head}"], run["images"]) for head in heads] for run in runs]
    figure = plain_frame(
        "Budget by target rate",
        "Mean fidelity of RCR; the first column is BACON, which selects once. A blank was not run.",
        "rho, the target refresh rate",
        "entries kept (select)",
        140 + 44 * len(runs),
    )
    figure.update_xaxes(type="category", showgrid=False, ticks="")
    figure.update_yaxes(type="category", showgrid=False, ticks="", ticklabelstandoff=6)
    figure.add_heatmap(
        z=[[mean.mean if mean else None for mean in row] for row in means],
        x=[title_of(head) for head in heads],
        y=[str(run["select"]) for run in runs],
        zmin=0,
        zmax=1,
        colorscale=SEQUENTIAL,
        colorbar={"title": "fidelity", "outlinewidth": 0, "thickness": 12},
        text=[[shown(mean.mean, "score") if mean else "" for mean in row] for row in means],
        texttemplate="%{text}",
        xgap=2,
        ygap=2,
        hoverongaps=False,
        hovertext=[
            [_cell(head, run["select"], mean) for head, mean in zip(heads, row, strict=True)]
            for run, row in zip(runs, means, strict=True)
        ],
        hoverinfo="text",
    )
    return figure


def _cell(head: str, select: Cell, mean: Interval | None) -> str:
    name = title_of(head) if head == "bacon" else f"{title_of('rcr')}, rho {head}"
    return hover(f"{name}, select {select}", told("fidelity", mean), over(mean)) if mean else ""


def _runs(table: Table) -> list[Run]:
    names = [column.id for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def _by_budget(run: Run) -> Curve:
    found = []
    for name, cell in run.items():
        if name.startswith("fidelity_") and (mean := interval_of(cell, run["images"])):
            found.append((int(name.removeprefix("fidelity_")), mean))
    return found


def _sweep(
    figure: go.Figure, policy: str, runs: Sequence[Run], setting: str, measure: str, axis: str
) -> None:
    """A curve of a measure over a setting."""
    points = []
    for run in runs:
        if (mean := interval_of(run.get(measure), run["images"])) is None:
            continue
        lines = (
            told("fidelity", run.get("fidelity")),
            told("refresh rate", run.get("refresh_rate"), "share"),
            told("reads", run.get("reads"), "number"),
            over(mean),
        )
        points.append((run[setting], mean, hover(f"{title_of(policy)}, {setting} {run[setting]:g}", *lines)))
    add_means(figure, title_of(policy), look_of(policy), points, yaxis=axis, showlegend=False)


def _name_ends(figure: go.Figure, curves: dict[str, Curve]) -> None:
    """The name of each curve right of all curves, no two over each other, with a line to where it ends."""
    scale = plot_height(figure) / (_UNIT[1] - _UNIT[0])
    ends = [(policy, *curve[-1]) for policy, curve in curves.items()]
    last = max(select for _, select, _ in ends)
    beside = math.log10(last) + _BESIDE * (figure.layout.xaxis.range[1] - figure.layout.xaxis.range[0])
    moved = spread([mean.mean * scale for _, _, mean in ends])
    for (policy, select, mean), place in zip(ends, moved, strict=True):
        name = short_title(policy)
        far = select < last or abs(place - mean.mean * scale) > LINE / 2
        figure.add_annotation(
            x=math.log10(select),
            y=mean.mean,
            text=f"<b>{name}</b>" if look_of(policy).loud else name,
            ax=beside,
            ay=place / scale,
            axref="x",
            ayref="y",
            xanchor="left",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=GREY if far else GRID,
            standoff=5,
            borderpad=0,
        )


def _ticks(values: Sequence[float], room: float = 1) -> dict:
    """Ticks of a log scale at the values that were run, named where they fit in `room` of the width."""
    wide = math.log10(values[-1] / values[0]) or 1
    taken: dict[float, tuple[float, float]] = {}  # the ends of a name, in pixels
    for value in dict.fromkeys((values[0], values[-1], *values)):
        at = _NARROWEST * room * math.log10(value / values[0]) / wide
        half = (_DIGIT * len(f"{value:g}") + _AIR) / 2
        if all(at + half <= left or right <= at - half for left, right in taken.values()):
            taken[value] = at - half, at + half
    texts = [f"{value:g}" if value in taken else "" for value in values]
    return {"tickvals": list(values), "ticktext": texts, "tickangle": 0, "minor": {"ticks": ""}}
