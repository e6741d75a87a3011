"""The figures of a study by name. Each takes the evidence of one model on one data set.

A figure is None where the evidence has nothing to draw. Its title stands in the layout, how to read it in the
layout's meta (`caption`); marks of single images carry the key of their row and the sample as customdata.
"""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go

from rcr_core.errors import ScopeError
from rcr_core.findings import Evidence
from viz.study.behaviour import controller_figure, detector_figure, layers_figure
from viz.study.comparison import fidelity_figure, gap_figure, per_image_figure
from viz.study.pareto import pareto_figure
from viz.study.sweeps import budgets_figure, grid_figure, rates_figure, thresholds_figure
from viz.study.terciles import terciles_figure

STUDY_FIGURES: dict[str, Callable[[Evidence], go.Figure | None]] = {
    "fidelity": fidelity_figure,
    "pareto": pareto_figure,
    "images": per_image_figure,
    "terciles": terciles_figure,
    "gap": gap_figure,
    "thresholds": thresholds_figure,
    "rates": rates_figure,
    "budgets": budgets_figure,
    "grid": grid_figure,
    "controller": controller_figure,
    "layers": layers_figure,
    "detector": detector_figure,
}


def study_figure_json(name: str, evidence: Evidence) -> str | None:
    """A figure as plotly JSON, None where there is nothing to draw.

    Raises `ScopeError` for an unknown name.
    """
    if name not in STUDY_FIGURES:
        raise ScopeError(f"there is no figure {name[:60]!r}", f"known figures: {', '.join(STUDY_FIGURES)}")
    figure = STUDY_FIGURES[name](evidence)
    return None if figure is None else figure.to_json()
