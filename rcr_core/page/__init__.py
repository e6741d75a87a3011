"""The Gradio controls of the page: the rail at its left, and the endpoints. Only app.py imports this room."""

from rcr_core.page.controls import PRIVATE, in_words
from rcr_core.page.endpoints import build_endpoints
from rcr_core.page.rail import build_rail

__all__ = ["PRIVATE", "build_endpoints", "build_rail", "in_words"]
