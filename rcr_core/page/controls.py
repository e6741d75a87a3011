"""What the controls of the page have in common."""

from __future__ import annotations

from dataclasses import Field
from functools import wraps
from typing import Any

import gradio as gr

from rcr_core.errors import ScopeError

PRIVATE = {"api_visibility": "private"}


def as_uploaded(picture: gr.Image, upload: Any) -> str | None:
    """The path of an upload as it came: the core opens it, and says what is wrong with it."""
    return upload.path if upload else None


# Of the class: where an event updates a component, Gradio goes on with a new instance of it.
gr.Image.preprocess = as_uploaded


def picture_input(**about: Any) -> gr.Image:
    return gr.Image(label="Picture", sources=["upload", "clipboard"], type="filepath", format="png", **about)


def in_words(function):
    """A function whose errors of the core become words that a script gets to read."""

    @wraps(function)
    def wrapped(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except ScopeError as error:
            raise gr.Error(str(error), print_exception=False) from error

    return wrapped


def setting_control(spec: Field, value: Any = None) -> gr.components.Component:
    """The form's control of a setting, by what its metadata says."""
    about = {
        "label": spec.name,
        "info": spec.metadata["help"],
        "value": spec.default if value is None else value,
        "elem_id": f"set-{spec.name}",
    }
    if "options" in spec.metadata:
        return gr.Dropdown(list(spec.metadata["options"]), **about)
    if "low" not in spec.metadata:
        return gr.Checkbox(**about)
    return gr.Number(**about)
