"""The frame that every figure shares: axes, grounds and texts that a light and a dark page can use alike."""

from __future__ import annotations

from html import escape

import numpy as np
import plotly.graph_objects as go

from rcr_core.trace import Trace
from viz.palette import BLUE, CLEAR, GRID, LABEL, REFERENCE

STEP_AXIS = "step (generated token)"
_SIGNS = {"\n": "⏎", "\t": "⇥"}
_LONGEST = 40  # characters of a token in a hover text
_FEW = 12  # steps or layers; so few have a tick each


def framed(x_title: str, y_title: str, steps: int) -> go.Figure:
    """A figure without traces: titled axes, clear grounds, the page's fonts."""
    figure = go.Figure(layout={"template": "none"})
    figure.update_layout(
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        margin={"l": 64, "r": 16, "t": 40, "b": 48},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hovermode="x",
        hoverlabel={"bgcolor": LABEL, "align": "left"},
        modebar={"bgcolor": CLEAR, "color": REFERENCE, "activecolor": BLUE},
        uirevision="kept",  # so that a zoom outlives the next steps of a live run
    )
    axis = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID, "automargin": True}
    figure.update_xaxes(title=x_title, dtick=every(steps), **axis)
    figure.update_yaxes(title=y_title, **axis)
    return figure


def every(count: int) -> int | None:
    """Ticks at every whole number where there are few of them; otherwise plotly chooses."""
    return 1 if count <= _FEW else None


def said(message: str) -> go.Figure:
    """A figure that has nothing to draw and says why."""
    figure = framed("", "", 0)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    text = escape(message, quote=False)
    figure.add_annotation(text=text, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    return figure


def nothing_decided(trace: Trace) -> str:
    """Why a trace has no decision to draw; empty where it has some."""
    if trace.steps < 2:
        return "Only the prefill so far, which takes no decision." if trace.steps else "There is no step yet."
    if not any(trace.meta.managed):
        return "Every layer is passed through: no policy selects there."
    if not trace.decided.any():
        return "Every layer keeps its whole prefix: nothing is evicted, so there is nothing to decide."
    return ""


def token_labels(trace: Trace) -> np.ndarray:
    """Every token as a hover text names it, object [N]: quoted, line breaks visible, markup as plain text."""
    return np.array([_label(piece) for piece in trace.meta.token_text], dtype=object)


def _label(piece: str | None) -> str:
    if piece is None:
        return "(completes no character)"
    seen = "".join(_SIGNS.get(one, one if one.isprintable() else "·") for one in piece[:_LONGEST])
    # Plotly reads some HTML in its texts, and a token may hold any.
    return f"“{escape(seen, quote=False)}{'…' if len(piece) > _LONGEST else ''}”"
