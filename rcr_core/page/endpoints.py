"""The named endpoints of the page, for scripts and agents."""

from __future__ import annotations

from typing import Any

import gradio as gr

from rcr_core.page.controls import in_words, picture_input
from rcr_core.policies import POLICIES
from rcr_core.serving import Scripts
from rcr_core.serving.form import NEW_TOKENS


def build_endpoints(scripts: Scripts) -> None:
    """Named endpoints; the hidden components give their inputs types that clients know how to fill."""

    def start_run(
        image: str,
        prompt: str,
        policy: str,
        settings: Any,
        max_new_tokens: float,
        more: list[str] | None = None,
        max_pixels: float | None = None,
        request: gr.Request = None,
    ):
        address = request.client.host if request and request.client else ""
        return scripts.start_run(address, image, prompt, policy, settings, max_new_tokens, more, max_pixels)

    start_run.__doc__ = scripts.start_run.__doc__
    with gr.Column(visible=False):
        picture, prompt, policy = (
            picture_input(),
            gr.Textbox(),
            gr.Dropdown(list(POLICIES), value="rcr"),
        )
        settings, limit, answer, button = gr.JSON(value={}), gr.Number(NEW_TOKENS), gr.JSON(), gr.Button()
        more = gr.File(label="more images", file_count="multiple")
        pixels = gr.Number(0, label="max_pixels")
        run, key, file = gr.Textbox(label="run"), gr.Textbox(label="key"), gr.File()
        button.click(
            in_words(start_run),
            [picture, prompt, policy, settings, limit, more, pixels],
            answer,
            api_name="start_run",
        )
        button.click(in_words(scripts.fetch_trace), [run, key], file, api_name="fetch_trace")
    gr.api(scripts.list_policies, api_name="list_policies")
    gr.api(scripts.list_models, api_name="list_models")
    gr.api(in_words(scripts.choose_model), api_name="choose_model")
    gr.api(in_words(scripts.wait_for_run), api_name="wait_for_run", concurrency_limit=8)
    gr.api(in_words(scripts.stop_run), api_name="stop_run")
