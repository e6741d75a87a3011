"""The picker of the server's models, how the chosen one stands, and what follows it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from rcr_core.page.controls import PRIVATE
from rcr_core.serving import Form
from rcr_core.serving.models import is_bundled
from viz.model_state import model_state


def build_models(page: gr.Blocks, form: Form) -> gr.Dropdown:
    """The picker, where there is more than one model, and how the chosen one stands.

    All who see the page share the model, so each page looks again and again what it is.
    """
    models = form.workbench.models
    several = len(models.names) > 1
    model = gr.Dropdown(
        list(models.names),
        value=models.name,
        label="Model, one for all who use this page",
        visible=several,
        elem_id="model",
    )
    state = gr.HTML(elem_id="model-state", padding=False)
    clock = gr.Timer(1.0)

    def look(shown: str) -> list[Any]:
        facts = form.workbench.server()
        settled = facts["state"] != "loading" and not several
        other = gr.skip() if shown == models.name else models.name
        return [other, model_state(facts), gr.Timer(active=False) if settled else gr.skip()]

    def choose(name: str) -> list[Any]:
        if refusal := form.choose_model(name):
            gr.Warning(refusal)
        return [models.name, model_state(form.workbench.server())]

    for moment in (page.load, clock.tick):
        moment(look, model, [model, state, clock], show_progress="hidden", **PRIVATE)
    model.input(choose, model, [model, state], show_progress="hidden", **PRIVATE)
    return model


def follow_model(form: Form, model: gr.Dropdown, first: list[Any], scenes: gr.Column) -> None:
    """Let the controls of `Form.first_values`, and the bundled scenes, follow the choice of a model."""

    def follow(name: str, *filled_in: str | float) -> list[Any]:
        ships = is_bundled(form.workbench.models.source(name))
        return [*form.first_values(name, *filled_in), gr.Column(visible=ships)]

    model.change(follow, [model, *first], [*first, scenes], show_progress="hidden", **PRIVATE)
