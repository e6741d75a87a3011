"""The figure of the controller at work: tau, what it tracks, and where it is meant to lead."""

from __future__ import annotations

from numbers import Real

import numpy as np
import plotly.graph_objects as go

from rcr_core.trace import Trace
from viz.frame import STEP_AXIS, framed, nothing_decided, said, token_labels
from viz.layer_steps import WINDOW
from viz.palette import BLUE, REFERENCE, VERMILLION


def tau_figure(trace: Trace) -> go.Figure:
    """The path of tau through the layers of every step, as each decision used it; log axis.

    Where the policy steers tau, also what tau tracks: the (1 - rho)-quantile of drift over `WINDOW` steps.
    """
    compared = trace.decided & (trace.tau > 0)
    if not compared.any():
        why = f"The policy {trace.meta.policy} compares drift with no threshold: there is no tau."
        return said(nothing_decided(trace) or why)
    step, layer = np.nonzero(compared)
    tau = trace.tau[compared]
    curves = [_path(trace, compared, step + layer / trace.meta.layers)]
    if (rho := target_rate(trace)) is not None:
        curves.append(_tracked(trace, compared, rho))
    if (tau0 := _setting(trace, "tau0")) is not None:
        curves.append(_start(tau0, curves[0]["x"][[0, -1]]))
    figure = framed(f"{STEP_AXIS}; within a step, layers from left to right", "", trace.steps)
    title = "tau (share of attention, log scale)"
    heights = np.concatenate([curve["y"] for curve in curves])
    figure.update_yaxes(type="log", title=title, tickformat="~g", nticks=5, range=_decades(heights, tau))
    for curve in curves:
        figure.add_scatter(**curve)
    return figure


def target_rate(trace: Trace) -> np.ndarray | None:
    """rho at every step, f64 [N], edits included; None where the policy steers to no rate."""
    rho = _setting(trace, "rho")
    if trace.meta.policy != "rcr" or rho is None or _setting(trace, "gain") == 0:
        return None
    target = np.full(trace.steps, float(rho))
    for edit in trace.meta.edits:
        if edit.get("kind") == "rho" and isinstance(edit.get("step"), int) and _is_number(edit.get("value")):
            target[max(edit["step"], 0) :] = edit["value"]
    return target.clip(0, 1)


def _path(trace: Trace, compared: np.ndarray, x: np.ndarray) -> dict:
    step, layer = np.nonzero(compared)
    verdict = np.where(trace.fire[compared], "refreshed", "kept its selection")
    told = (step, layer, token_labels(trace)[step], trace.drift[compared], verdict)
    return {
        "x": x,
        "y": trace.tau[compared],
        "name": "tau",
        "line": {"color": BLUE, "width": 1.5, "shape": "hv"},
        "customdata": np.array(told, dtype=object).T,
        "hovertemplate": "step %{customdata[0]}, layer %{customdata[1]}<br>token %{customdata[2]}"
        "<br>tau %{y:.4~g}, drift %{customdata[3]:.4~g}<br>%{customdata[4]}<extra></extra>",
    }


def _tracked(trace: Trace, compared: np.ndarray, rho: np.ndarray) -> dict:
    """The (1 - rho)-quantile of drift over the last `WINDOW` steps, at the last layer of each step."""
    step = np.flatnonzero(compared.any(axis=1))
    quantile = [
        np.quantile(trace.drift[low : at + 1][compared[low : at + 1]], 1 - rho[at])
        for at, low in zip(step, np.maximum(step - WINDOW + 1, 0), strict=True)
    ]
    return {
        "x": step + 1 - 1 / trace.meta.layers,
        "y": np.array(quantile),
        "name": f"(1 - rho)-quantile of drift, last {WINDOW} steps",
        "line": {"color": VERMILLION, "width": 1.5, "dash": "dash"},
        "hoverinfo": "skip",
    }


def _start(tau0: float, ends: np.ndarray) -> dict:
    return {
        "x": ends,
        "y": np.full(2, tau0),
        "mode": "lines",
        "name": "tau0, the threshold at the start",
        "line": {"color": REFERENCE, "dash": "dot"},
        "hoverinfo": "skip",
    }


def _decades(heights: np.ndarray, tau: np.ndarray) -> list[float]:
    """The range of the log axis: a decade at least, or rounding would look like movement; all of tau."""
    seen = np.log10(heights[heights >= tau.min() / 10])
    low, high = seen.min() - 0.1, seen.max() + 0.1
    spare = max(1 - (high - low), 0) / 2
    return [float(low - spare), float(high + spare)]


def _setting(trace: Trace, name: str) -> float | None:
    """A setting that is a number, or None: a file may hold anything under its name."""
    value = trace.meta.settings.get(name)
    return value if _is_number(value) else None


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
