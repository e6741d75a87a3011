"""Figures of the main comparison: each policy, RCR against BACON by image, the gap to InfiniGen."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from rcr_core.findings import Evidence, Interval, Row
from rcr_core.findings.correlations import gap_to_infinigen
from rcr_core.findings.evidence import in_common, uneven
from rcr_core.findings.kinds import REFERENCE
from rcr_core.findings.measures import having
from rcr_core.findings.wording import images
from viz.palette import GRID
from viz.palette import REFERENCE as GREY
from viz.study.frames import (
    FIDELITY,
    add_diagonal,
    add_level,
    bars,
    fidelity_of,
    hover,
    over,
    plain_frame,
    rate_of,
    told,
)
from viz.study.looks import look_of
from viz.study.names import title_of
from viz.study.numbers import shown

_ROW = 32  # pixels a policy
_AROUND = 140  # pixels of title and axis
_OWN = ", which are not yet the same for all,"
_MARGIN = 0.03  # beyond the outermost marks


def fidelity_figure(evidence: Evidence) -> go.Figure | None:
    """Mean fidelity of every policy with its interval, the best at the top."""
    columns = evidence.main()
    found = {
        policy: mean
        for policy, rows in columns.items()
        if policy != REFERENCE and (mean := fidelity_of(rows))
    }
    if not found:
        return None
    order = sorted(found, key=lambda policy: found[policy].mean)
    figure = plain_frame(
        "Fidelity to the uncompressed run",
        f"Mean over images{_OWN if uneven(columns) else ''} with its bootstrap 95 % interval. Dotted: the "
        "uncompressed run itself; dashed: BACON.",
        FIDELITY,
        "",
        _ROW * len(order) + _AROUND,
    )
    figure.update_xaxes(range=[0, 1.02])
    names = [escape(title_of(policy), quote=False) for policy in order]
    figure.update_yaxes(type="category", categoryarray=names, ticklabelstandoff=6)
    _upright(figure, 1, GREY, "dot")
    if "bacon" in found:
        _upright(figure, found["bacon"].mean, look_of("bacon").colour, "dash")
    for policy, name in zip(order, names, strict=True):
        _dot(figure, policy, name, found[policy], rate_of(columns[policy]))
    return figure


def _dot(figure: go.Figure, policy: str, name: str, mean: Interval, rate: Interval | None) -> None:
    look = look_of(policy)
    lines = (told("fidelity", mean), told("refresh rate", rate, "share"), over(mean))
    figure.add_scatter(
        x=[mean.mean],
        y=[name],
        error_x=look.error(*bars([mean])),
        name=name,
        mode="markers",
        marker=look.marker,
        showlegend=False,
        hovertext=[hover(title_of(policy), *lines)],
        hoverinfo="text",
    )


def per_image_figure(evidence: Evidence) -> go.Figure | None:
    """Fidelity of each image under RCR against that under BACON; above the diagonal RCR is nearer."""
    rcr, bacon = (having(evidence.of(policy), "fidelity") for policy in ("rcr", "bacon"))
    samples = in_common(rcr, bacon)
    if not samples:
        return None
    x, y = _fidelities(bacon, samples), _fidelities(rcr, samples)
    ahead = sum(one > other for one, other in zip(y, x, strict=True))
    level = sum(one == other for one, other in zip(y, x, strict=True))
    figure = plain_frame(
        "RCR against BACON, image by image",
        f"Above the diagonal RCR stays nearer to the uncompressed run: {ahead} of {images(len(samples))}"
        f"{f', and as near in {level}' if level else ''}.",
        "fidelity under BACON (ROUGE-L F1)",
        "fidelity under RCR (ROUGE-L F1)",
        440,
    )
    low = max(min(*x, *y) - _MARGIN, 0)
    high = min(max(*x, *y), 1) + _MARGIN
    figure.update_xaxes(range=[low, high], ticklabelstandoff=4)  # off that of the y axis in the corner
    figure.update_yaxes(range=[low, high])
    add_diagonal(figure, low, high)
    texts = [
        hover(
            sample,
            told("RCR", rcr[sample].fidelity),
            told("BACON", bacon[sample].fidelity),
            _leaves("RCR", rcr[sample]),
            _leaves("BACON", bacon[sample]),
        )
        for sample in samples
    ]
    _images(figure, x, y, [rcr[sample] for sample in samples], texts)
    return figure


def gap_figure(evidence: Evidence) -> go.Figure | None:
    """InfiniGen's fidelity less RCR's over mean drift, an image a mark."""
    found = gap_to_infinigen(evidence)
    if not found.leads:
        return None
    rcr, other = evidence.of("rcr"), evidence.of("infinigen")
    correlation = found.correlation(found.drifts)
    said = "" if correlation is None else f" Spearman's rank correlation: {shown(correlation, 'number')}."
    figure = plain_frame(
        "Gap to InfiniGen against drift",
        f"An image a mark, {images(len(found.leads))}; above 0 InfiniGen is nearer to the uncompressed run."
        f"{said}",
        "mean drift under RCR (share of attention)",
        "fidelity, InfiniGen − RCR",
        400,
    )
    add_level(figure, 0, "")
    texts = [
        hover(
            sample,
            told("gap", lead),
            told("RCR", rcr[sample].fidelity),
            told("InfiniGen", other[sample].fidelity),
            told("mean drift", rcr[sample].mean_drift, "number"),
        )
        for sample, lead in found.leads.items()
    ]
    marks = list(found.drifts.values()), list(found.leads.values())
    _images(figure, *marks, [rcr[sample] for sample in found.leads], texts)
    return figure


def _images(
    figure: go.Figure, x: Sequence[float], y: Sequence[float], rows: Sequence[Row], texts: Sequence[str]
) -> None:
    """A mark an image. Its customdata are the key of RCR's row and the sample: a page can open the run."""
    look = look_of("rcr")
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        name="images",
        showlegend=False,
        marker={"color": look.colour, "size": 8, "opacity": 0.85, "line": {"color": GRID, "width": 1}},
        customdata=[[row.key, row.sample] for row in rows],
        hovertext=texts,
        hoverinfo="text",
    )


def _fidelities(rows: dict[str, Row], samples: Sequence[str]) -> list[float]:
    return [rows[sample].fidelity for sample in samples]


def _leaves(name: str, row: Row) -> str:
    """Where a run leaves the uncompressed one."""
    if row.diverges_at is None:
        return ""
    return f"{name} never diverges" if row.diverges_at < 0 else f"{name} diverges at step {row.diverges_at}"


def _upright(figure: go.Figure, at: float, colour: str, dash: str) -> None:
    line = {"color": colour, "width": 1.5, "dash": dash}
    figure.add_shape(type="line", x0=at, x1=at, yref="paper", y0=0, y1=1, line=line, layer="below")
