"""Hands the page its front end: where its files lie, and how a component of the page starts a part of it."""

from __future__ import annotations

from pathlib import Path

import plotly

FRONT = Path(__file__).parent / "scope"
STYLES = tuple(sorted(FRONT.rglob("*.css")))
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def mounting(module: str, function: str) -> str:
    """The JavaScript with which a component of the page mounts a part of the front end on its element.

    The address is relative to the page's own, so that the page works under any root path.
    """
    return (
        "const root = new URL('scope/front/', location.origin + location.pathname.replace(/\\/?$/, '/'));\n"
        f"import(new URL('{module}', root)).then((part) => part.{function}(element)).catch((error) => {{\n"
        "  element.textContent = 'This part could not be loaded: ' + error.message + '. Reload the page.';\n"
        "});"
    )
