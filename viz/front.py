"""Hands the page its front end: where its files lie, and how a component of the page starts a part of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import plotly

FRONT = Path(__file__).parent / "scope"
STYLES = tuple(sorted(FRONT.rglob("*.css")))
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def version_of(folder: Path) -> str:
    """A name for what the modules in a folder say: other words in any of them make another name."""
    files = sorted(folder.rglob("*.js"))
    parts = (part for file in files for part in (str(file.relative_to(folder)).encode(), file.read_bytes()))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


# A part of each module's address, so that a browser may keep them for good; an edit shows after a restart.
VERSION = version_of(FRONT)


def mounting(module: str, function: str) -> str:
    """The JavaScript with which a component of the page mounts a part of the front end on its element.

    The address is relative to the page's own, so that the page works under any root path.
    """
    return (
        "const here = location.origin + location.pathname.replace(/\\/?$/, '/');\n"
        f"const root = new URL('scope/front/{VERSION}/', here);\n"
        f"import(new URL('{module}', root)).then((part) => part.{function}(element)).catch((error) => {{\n"
        "  element.textContent = 'This part could not be loaded: ' + error.message + '. Reload the page.';\n"
        "});"
    )
