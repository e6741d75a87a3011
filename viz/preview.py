"""What the model makes of a picture and a prompt, before anything runs."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from rcr_core.errors import ScopeError
from rcr_core.trace import VisualGeometry
from viz.patch_grid import as_data_address, patch_grid


def preview(
    prepare: Callable[..., Any], path: str | None, more: Any, prompt: str, max_pixels: float | None = None
) -> str:
    """The processed pictures under their patch grids, and what they come to in tokens, as HTML.

    prepare: gives the prepared prompt of a picture's file, those after it, a prompt and a limit of pixels;
    None without any picture.
    """
    try:
        prepared = prepare(path, more, prompt, max_pixels)
    except ScopeError as error:
        return f"<p class='rail-error' role='alert'>{html.escape(str(error))}</p>"
    if prepared is None:
        return "<p>Choose a picture first.</p>"
    geometry = prepared.geometry
    grids = "".join(_grid(picture, geometry, index) for index, picture in enumerate(prepared.pictures))
    tokens = f"{len(geometry.position)} visual tokens in a prompt of {prepared.length}"
    return f"{grids}<p>{tokens}</p>"


def _grid(picture: bytes, geometry: VisualGeometry, index: int) -> str:
    """One picture of a prompt, and with several how many tokens it has."""
    own = geometry.image == index
    drawn = as_data_address(patch_grid(picture, geometry.box[own], geometry.level[own]))
    count = f"<p>picture {index + 1}: {own.sum()} visual tokens</p>" if len(geometry.size) > 1 else ""
    return f"<img src='{drawn}' alt='picture {index + 1} with its patch grid'>{count}"
