"""The rail: what goes into a run."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

import gradio as gr

from rcr_core.bundled.examples import EXAMPLES, EXAMPLES_FOLDER
from rcr_core.page.controls import PRIVATE, in_words, picture_input, setting_control
from rcr_core.page.picker import build_models, follow_model
from rcr_core.policies import POLICIES
from rcr_core.serving import PRESETS, Form, setting_names
from rcr_core.serving.form import NEW_TOKENS
from rcr_core.serving.models import is_bundled
from rcr_core.serving.presets import MAIN_SETTINGS
from rcr_core.settings import Settings
from viz.preview import preview

WITH_OWNER = "(...values) => [...values.slice(0, -1), window.rcrPage ? window.rcrPage.owner : '']"
OPEN_PAIR = "(text) => { window.rcrPage.opened(text); return []; }"


def build_rail(page: gr.Blocks, form: Form) -> None:
    """What goes in: model, picture, policies, prompt, settings; and Run."""
    model = build_models(page, form)
    picture = picture_input(height=170, elem_id="picture")
    more = build_more()
    ships = any(map(is_bundled, form.workbench.models.sources))
    with gr.Column(visible=form.workbench.bundled, elem_id="drawn") as drawn:
        seed = build_scenes(form, picture) if ships else gr.Number(visible=False)
    titles = [(policy.title, name) for name, policy in POLICIES.items()]
    with gr.Row(elem_id="policies"):
        a = gr.Dropdown(titles, value="rcr", label="A", min_width=100)
        b = gr.Dropdown([*titles, ("none", "")], value="bacon", label="B", min_width=100)
    preset = gr.Dropdown(list(PRESETS), value=form.workbench.preset, label="Preset", elem_id="preset")
    with gr.Row():
        run = gr.Button("Run", variant="primary", elem_id="run", min_width=120)
        reset = gr.Button("Reset", min_width=70)
    prompt = gr.Textbox(form.workbench.prompt, label="Prompt", lines=2, max_lines=8, elem_id="prompt")
    by_name = {spec.name: spec for spec in fields(Settings)}
    with gr.Accordion("Budget and controller", open=False):
        first = PRESETS[form.workbench.preset]
        controls = [setting_control(by_name[name], first[name]) for name in MAIN_SETTINGS]
        limit = gr.Number(NEW_TOKENS, label="max_new_tokens")
    with gr.Accordion("B, where it differs", open=False, elem_id="differing"):
        of_b = [gr.Textbox(label=f"{name} of B", placeholder="as A", max_lines=1) for name in MAIN_SETTINGS]
    with gr.Accordion("More settings", open=False):
        reference = gr.Checkbox(True, label="also decode uncompressed, to measure fidelity")
        pixels = gr.Number(
            0,
            label="max_pixels",
            info="scale pictures of more pixels down first; 0: as the model's processor does",
            elem_id="max-pixels",
        )
        controls += [setting_control(by_name[name]) for name in setting_names()[len(MAIN_SETTINGS) :]]
    with gr.Accordion("As the model sees it", open=False, elem_id="prepared"):
        seen = gr.HTML("<p>Choose a picture first.</p>")
    owner, opened = gr.Textbox(visible=False), gr.Textbox(visible=False)
    inputs = [picture, more, prompt, a, b, reference, seed, limit, pixels, *controls, *of_b, owner]
    for press in (run.click, prompt.submit):
        started = press(form.start, inputs, opened, js=WITH_OWNER, show_progress="hidden", **PRIVATE)
        started.success(None, opened, None, js=OPEN_PAIR)
    main = controls[: len(MAIN_SETTINGS)]
    preset.input(form.preset_values, preset, main, **PRIVATE)
    follow_model(form, model, [prompt, preset, *main], drawn)
    reset.click(form.reset, None, [preset, limit, *controls, *of_b, pixels], **PRIVATE)
    shown = partial(preview, form.preview)
    for chosen in (picture.change, more.change, pixels.blur, pixels.submit, model.change):
        chosen(shown, [picture, more, prompt, pixels], seen, show_progress="minimal", **PRIVATE)


def build_more() -> gr.Gallery:
    """The pictures of a prompt after the first.

    The gallery comes when it is opened: it brings along a player of videos, a fifth of the page's first load.
    """
    with gr.Accordion("More pictures", open=False, elem_id="further") as further:
        more = gr.Gallery(
            visible=False,
            label="More pictures, after the first",
            show_label=False,
            type="filepath",
            columns=3,
            height=136,
            object_fit="cover",
            allow_preview=False,
            buttons=[],
            interactive=True,
            elem_id="more",
        )
    further.expand(None, None, more, js="() => ({ __type__: 'update', visible: true })", **PRIVATE)
    return more


def build_scenes(form: Form, picture: gr.Image) -> gr.Number:
    """The bundled scenes, one click away, and new ones by their seed."""
    paths = [[str(EXAMPLES_FOLDER / f"{name}.png")] for name in EXAMPLES]
    gr.Examples(paths, picture, label="Scenes", elem_id="scenes", examples_per_page=len(paths))
    with gr.Row(elem_id="new-scene"):
        fresh = gr.Button("New scene", size="sm", min_width=90)
        seed = gr.Number(None, label="seed", container=False, min_width=90)
    fresh.click(lambda: form.scene(), None, [picture, seed], **PRIVATE)
    seed.submit(in_words(form.scene), seed, [picture, seed], **PRIVATE)
    return seed
