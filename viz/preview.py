"""What the model makes of a picture and a prompt, before anything runs."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from rcr_core.errors import ScopeError
from viz.patch_grid import as_data_address, patch_grid


def preview(prepare: Callable[[str | None, str], Any], path: str | None, prompt: str) -> str:
    """The processed picture under its patch grid, and what it comes to in tokens, as HTML.

    prepare: what gives the prepared prompt of a picture's file and a prompt; None without a picture.
    """
    try:
        prepared = prepare(path, prompt)
    except ScopeError as error:
        return f"<p class='rail-error' role='alert'>{html.escape(str(error))}</p>"
    if prepared is None:
        return "<p>Choose a picture first.</p>"
    geometry = prepared.geometry
    grid = as_data_address(patch_grid(prepared.image_png, geometry.box, geometry.level))
    tokens = f"{len(geometry.position)} visual tokens in a prompt of {prepared.length}"
    return f"<img src='{grid}' alt='the picture with its patch grid'><p>{tokens}</p>"
