"""Decoding: the attention function, the step loop, and the recorder of what each step saw."""

from rcr_core.engine.engine import Engine, ModelShape, Session
from rcr_core.engine.maps import head_maps_fit, most_cells
from rcr_core.engine.recorder import Recorder
from rcr_core.engine.text import TextStream, TokenNames

__all__ = [
    "Engine",
    "ModelShape",
    "Recorder",
    "Session",
    "TextStream",
    "TokenNames",
    "head_maps_fit",
    "most_cells",
]
