"""Colours of the figures: a colour-blind reader can tell them apart, on a light and on a dark ground.

No text colour stands here: the page sets the font's colour for its theme, and every text inherits it.
"""

from __future__ import annotations

# Of Okabe and Ito's set, the colours with a contrast of 3:1 or more on both grounds.
BLUE = "#0072b2"
VERMILLION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"

REFERENCE = "#7f7f7f"  # what a curve is held against: tau0, rho
GRID = "rgba(127, 127, 127, 0.25)"
CLEAR = "rgba(0, 0, 0, 0)"
SEQUENTIAL = "Viridis"
LABEL = "#444444"  # the ground of hover labels; plotly writes on it in white
