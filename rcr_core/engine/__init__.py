"""Decoding: the attention function, the step loop, and the recorder of what each step saw."""

from rcr_core.engine.engine import Engine, ModelShape, Session
from rcr_core.engine.recorder import Recorder, head_maps_fit
from rcr_core.engine.text import TextStream, TokenNames

__all__ = ["Engine", "ModelShape", "Recorder", "Session", "TextStream", "TokenNames", "head_maps_fit"]
