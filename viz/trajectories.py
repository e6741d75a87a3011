"""Figures of how a run went, each from its trace: the threshold, drift, the refresh rate, the attention mass.

A trace that has nothing to draw gives a figure that says why. Hover texts name step, token and layer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go

from rcr_core.errors import ScopeError
from rcr_core.trace import Trace
from viz.frame import STEP_AXIS, every, framed, nothing_decided, said, token_labels
from viz.layer_steps import MASS_KINDS, WINDOW, mean_mass, running_sum, share
from viz.palette import BLUE, GREEN, PURPLE, REFERENCE, SEQUENTIAL, VERMILLION
from viz.threshold import target_rate, tau_figure


def drift_figure(trace: Trace) -> go.Figure:
    """Drift of every decision, layer by step; layer-steps without a decision stay blank."""
    decided = trace.decided
    if not decided.any():
        return said(nothing_decided(trace))
    figure = framed(STEP_AXIS, "layer", trace.steps)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(autorange="reversed", dtick=every(trace.meta.layers), showgrid=False)
    figure.add_heatmap(
        z=np.where(decided, trace.drift, np.nan)[1:].T,
        x=np.arange(1, trace.steps),
        y=np.arange(trace.meta.layers),
        colorscale=SEQUENTIAL,
        zmin=0,
        zmax=float(trace.drift[decided].max()) or 1,
        colorbar={"title": "drift<br>(share of<br>attention)", "outlinewidth": 0},
        text=_verdicts(trace, decided)[1:].T,
        hoverongaps=False,
        hovertemplate="step %{x}, layer %{y}<br>%{text}<br>drift %{z:.4~g}<extra></extra>",
    )
    step, layer = np.nonzero(decided & (trace.fire == 1))
    figure.add_scatter(
        x=step,
        y=layer,
        mode="markers",
        name="refreshed (click to show)",
        marker={"color": VERMILLION, "size": 5, "line": {"color": "white", "width": 1}},
        hoverinfo="skip",
        visible="legendonly",  # thousands of marks would hide the colours below
        showlegend=True,
    )
    return figure


def rate_figure(trace: Trace) -> go.Figure:
    """The refresh rate since the start and over `WINDOW` steps, and rho where the policy steers to it."""
    decided = trace.decided
    if not decided.any():
        return said(nothing_decided(trace))
    fired, counted = (decided & (trace.fire == 1)).sum(axis=1), decided.sum(axis=1)
    total = share(np.cumsum(fired), np.cumsum(counted))[1:]
    recent = share(running_sum(fired), running_sum(counted))[1:]
    step, recently = np.arange(1, trace.steps), f"last {WINDOW} steps"
    figure = framed(STEP_AXIS, "refresh rate (share of layer-steps)", trace.steps)
    figure.update_yaxes(range=[0, 1.02])
    figure.add_scatter(
        x=step,
        y=total,
        name="since the start",
        line={"color": BLUE, "width": 2.5},
        customdata=np.array((token_labels(trace)[1:], fired[1:], counted[1:], recent), dtype=object).T,
        hovertemplate="step %{x}, token %{customdata[0]}<br>%{customdata[1]} of %{customdata[2]} layers"
        f" refreshed<br>since the start %{{y:.1%}}<br>{recently} %{{customdata[3]:.1%}}<extra></extra>",
    )
    recent_line = {"color": VERMILLION, "width": 1.5}
    figure.add_scatter(x=step, y=recent, name=recently, line=recent_line, hoverinfo="skip")
    if (rho := target_rate(trace)) is not None:
        line = {"color": REFERENCE, "dash": "dash", "shape": "hv"}
        name = "rho, the target rate"
        figure.add_scatter(x=step, y=rho[1:], name=name, line=line, mode="lines", hoverinfo="skip")
    return figure


def mass_figure(trace: Trace) -> go.Figure:
    """Where the attention of each step rested, by kind of entry; mean over the managed layers."""
    if trace.steps < 2 or not any(trace.meta.managed):
        return said(nothing_decided(trace))
    mass, labels = mean_mass(trace), token_labels(trace)
    labels[0] += " (prefill: the whole prompt takes part)"
    figure = framed(STEP_AXIS, "attention (share, mean over layers)", trace.steps)
    figure.update_yaxes(range=[0, 1])
    told = [f"{kind} %{{customdata[{at}]:.1%}}" for at, kind in enumerate(MASS_KINDS, start=1)]
    for kind, height, colour in zip(MASS_KINDS, mass.T, (BLUE, GREEN, PURPLE, VERMILLION), strict=True):
        figure.add_scatter(
            x=np.arange(trace.steps),
            y=height,
            name=kind,
            mode="lines",
            stackgroup="mass",
            line={"color": colour, "width": 1},
            hoverinfo="skip",
        )
    figure.data[0].update(  # one label for all four
        customdata=np.column_stack((labels, mass)),
        hovertemplate=f"step %{{x}}, token %{{customdata[0]}}<br>{'<br>'.join(told[::-1])}<extra></extra>",
    )
    return figure


FIGURES: dict[str, Callable[[Trace], go.Figure]] = {
    "tau": tau_figure,
    "drift": drift_figure,
    "rate": rate_figure,
    "mass": mass_figure,
}


def figure_json(name: str, trace: Trace) -> str:
    """A figure as plotly JSON. Raises `ScopeError` for an unknown name."""
    if name not in FIGURES:
        raise ScopeError(f"there is no figure {name[:60]!r}", f"known figures: {', '.join(FIGURES)}")
    return FIGURES[name](trace).to_json()


def _verdicts(trace: Trace, decided: np.ndarray) -> np.ndarray:
    """What each decision came to, for a hover text: object [N, L]."""
    told = np.full(decided.shape, "", dtype=object)
    labels = token_labels(trace)
    for step, layer in zip(*np.nonzero(decided), strict=True):
        tau = trace.tau[step, layer]
        verdict = "refreshed" if trace.fire[step, layer] else "kept its selection"
        told[step, layer] = f"token {labels[step]}<br>{verdict}{f', tau {tau:.4g}' if tau > 0 else ''}"
    return told
