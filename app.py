"""The page of RCR Scope: builds it, wires its events, and adds the routes of the traces."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import fields
from functools import partial, wraps
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import gradio as gr
import plotly
from starlette.middleware import Middleware

from rcr_core.bundled.examples import EXAMPLES, EXAMPLES_FOLDER
from rcr_core.errors import ScopeError, StudyError
from rcr_core.policies import POLICIES
from rcr_core.runs import RunStore, StoreLimits
from rcr_core.serving import PRESETS, Form, Scripts, Workbench, setting_names
from rcr_core.serving.examples import add_examples
from rcr_core.serving.form import NEW_TOKENS
from rcr_core.serving.options import parser, studies_of
from rcr_core.serving.presets import MAIN_SETTINGS
from rcr_core.serving.studies import Studies
from rcr_core.settings import Settings
from rcr_core.web import scope_routes
from rcr_core.web.compression import CompressedPage
from rcr_core.web.findings import StudyViews
from rcr_core.web.login import logged_in
from rcr_core.web.studies import StudyRoutes
from viz.front import FRONT, PLOTLY_JS, STYLES, mounting
from viz.guide import guide_sections
from viz.preview import preview
from viz.study.figures import STUDY_FIGURES, study_figure_json
from viz.study.files import table_csv, table_latex
from viz.study.names import head_of
from viz.study.numbers import ends, shown
from viz.study.report import report_html
from viz.tables import TABLES
from viz.trajectories import FIGURES, figure_json

MAX_UPLOAD = "64mb"


def as_uploaded(picture: gr.Image, upload: Any) -> str | None:
    """The path of an upload as it came: the core opens it, and says what is wrong with it."""
    return upload.path if upload else None


# Of the class: where an event updates a component, Gradio goes on with a new instance of it.
gr.Image.preprocess = as_uploaded


def picture_input(**about: Any) -> gr.Image:
    return gr.Image(label="Picture", sources=["upload", "clipboard"], type="filepath", format="png", **about)


THEME = gr.themes.Base(
    primary_hue="violet",
    neutral_hue="slate",
    font=[gr.themes.LocalFont("IBM Plex Sans", (400, 700)), "system-ui", "sans-serif"],
    font_mono=["ui-monospace", "monospace"],
    spacing_size="sm",
    radius_size="sm",
    text_size="sm",
)
PRIVATE = {"api_visibility": "private"}
HEADING = (
    "<h1>RCR Scope</h1><p>what a compressed KV cache keeps of an image, drops, and looks at, step by step</p>"
)
WITH_OWNER = "(...values) => [...values.slice(0, -1), window.rcrPage ? window.rcrPage.owner : '']"
OPEN_PAIR = "(text) => { window.rcrPage.opened(text); return []; }"


def in_words(function):
    """A function whose errors of the core become words that a script gets to read."""

    @wraps(function)
    def wrapped(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except ScopeError as error:
            raise gr.Error(str(error), print_exception=False) from error

    return wrapped


def setting_control(spec, value: Any = None) -> gr.components.Component:
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


def build_page(workbench: Workbench) -> gr.Blocks:
    """The page: the Scope with its form, the runs, the guide, and the endpoints."""
    form = Form(workbench)
    page = gr.Blocks(title="RCR Scope", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400))
    with page:
        gr.HTML(HEADING, elem_id="heading", apply_default_css=False)
        with gr.Tabs(elem_id="rooms"):
            with gr.Tab("Scope", id="scope"), gr.Row(elem_id="bench"):
                with gr.Column(scale=0, min_width=288, elem_id="rail"):
                    build_rail(form)
                with gr.Column(scale=1, min_width=320, elem_id="views"):
                    part_of_front("scope", "main.js", "mountScope")
            with gr.Tab("Runs", id="runs"):
                part_of_front("runs", "runs/runs.js", "mountRuns")
            with gr.Tab("Study", id="study"):
                part_of_front("study", "study/study.js", "mountStudy")
            with gr.Tab("Guide", id="guide"):
                tour = gr.Button("Take the tour on a finished example", elem_id="tour")
                tour.click(None, js="() => { window.rcrPage.tour(); return []; }")
                for name, text in guide_sections().items():
                    gr.Markdown(text, elem_id=f"guide-{name}", elem_classes="guide")
        build_endpoints(Scripts(form))
    return page


def part_of_front(name: str, module: str, function: str) -> None:
    """A component that is drawn by the front end alone."""
    gr.HTML(
        html_template="<div></div>",
        js_on_load=mounting(module, function),
        elem_id=name,
        apply_default_css=False,
    )


def build_rail(form: Form) -> None:
    """What goes in: picture, policies, prompt, settings; and Run."""
    picture = picture_input(height=170, elem_id="picture")
    seed = build_scenes(form, picture) if form.workbench.bundled else gr.Number(visible=False)
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
        controls += [setting_control(by_name[name]) for name in setting_names()[len(MAIN_SETTINGS) :]]
    with gr.Accordion("As the model sees it", open=False, elem_id="prepared"):
        seen = gr.HTML("<p>Choose a picture first.</p>")
    owner, opened = gr.Textbox(visible=False), gr.Textbox(visible=False)
    inputs = [picture, prompt, a, b, reference, seed, limit, *controls, *of_b, owner]
    for press in (run.click, prompt.submit):
        started = press(form.start, inputs, opened, js=WITH_OWNER, show_progress="hidden", **PRIVATE)
        started.success(None, opened, None, js=OPEN_PAIR)
    main = controls[: len(MAIN_SETTINGS)]
    preset.input(form.preset_values, preset, main, **PRIVATE)
    reset.click(form.reset, None, [preset, limit, *controls, *of_b], **PRIVATE)
    picture.change(
        partial(preview, form.preview), [picture, prompt], seen, show_progress="minimal", **PRIVATE
    )


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


def build_endpoints(scripts: Scripts) -> None:
    """Named endpoints; the hidden components give their inputs types that clients know how to fill."""

    def start_run(
        image: str, prompt: str, policy: str, settings: Any, max_new_tokens: float, request: gr.Request
    ):
        address = request.client.host if request and request.client else ""
        return scripts.start_run(address, image, prompt, policy, settings, max_new_tokens)

    start_run.__doc__ = scripts.start_run.__doc__
    with gr.Column(visible=False):
        picture, prompt, policy = (
            picture_input(),
            gr.Textbox(),
            gr.Dropdown(list(POLICIES), value="rcr"),
        )
        settings, limit, answer, button = gr.JSON(value={}), gr.Number(NEW_TOKENS), gr.JSON(), gr.Button()
        run, key, file = gr.Textbox(label="run"), gr.Textbox(label="key"), gr.File()
        button.click(
            in_words(start_run),
            [picture, prompt, policy, settings, limit],
            answer,
            api_name="start_run",
        )
        button.click(in_words(scripts.fetch_trace), [run, key], file, api_name="fetch_trace")
    gr.api(scripts.list_policies, api_name="list_policies")
    gr.api(in_words(scripts.wait_for_run), api_name="wait_for_run", concurrency_limit=8)
    gr.api(in_words(scripts.stop_run), api_name="stop_run")


def study_views() -> StudyViews:
    """How the page draws and writes what studies found."""
    figures = {name: partial(study_figure_json, name) for name in STUDY_FIGURES}
    return StudyViews(figures, partial(report_html, command=""), table_csv, table_latex, shown, ends, head_of)


def serve(
    options: argparse.Namespace, store: RunStore, studies: Studies | None = None, **launch: Any
) -> gr.Blocks:
    """Start the server and begin to load the model; returns the running page."""
    studies = studies or studies_of(options, store)
    workbench = studies.workbench
    workbench.load()
    add_examples(store)
    figures = {name: partial(figure_json, name) for name in FIGURES}
    routes = scope_routes(
        store,
        allowed=logged_in,
        front=FRONT,
        plotly_js=PLOTLY_JS,
        figures=figures,
        tables=TABLES,
        studies=StudyRoutes(studies, study_views()),
        server=lambda: workbench.server() | {"plotly": plotly.__version__},
    )
    blocks = build_page(workbench).queue(max_size=64, default_concurrency_limit=4)
    blocks.launch(
        server_name=options.host,
        server_port=options.port,
        auth=options.auth,
        share=False,  # whatever the environment says
        mcp_server=options.mcp,
        app_kwargs={"routes": routes, "middleware": [Middleware(CompressedPage)]},
        css_paths=list(STYLES),
        theme=THEME,
        quiet=True,
        max_file_size=MAX_UPLOAD,
        state_session_capacity=256,
        run_history=False,
        footer_links=["api"],
        **launch,
    )
    return blocks


def main(argv: list[str] | None = None) -> None:
    options = parser().parse_args(argv)
    if options.mcp and find_spec("mcp") is None:
        sys.exit('app.py: --mcp needs a package that is missing: pip install "gradio[mcp]"')
    # Uploads lie in a folder of this server's own: a shared one is emptied by whichever server ends first.
    with tempfile.TemporaryDirectory(prefix="rcr-scope-") as folder:
        os.environ.setdefault("GRADIO_TEMP_DIR", folder)
        run(options)


def run(options: argparse.Namespace) -> None:
    """Serve until interrupted."""
    store = RunStore(StoreLimits(concurrent=options.max_runs))
    try:
        studies = studies_of(options, store)
    except StudyError as error:
        sys.exit(f"app.py: --study: {error}")
    try:
        page = serve(options, store, studies, prevent_thread_lock=True)
        print(f"RCR Scope is at {page.local_url}", flush=True)
        page.block_thread()
    except OSError:
        reason = "the port is taken, or the address is not one of this machine"
        hint = "choose another with --port or --host"
        sys.exit(f"app.py: cannot serve on {options.host}:{options.port}: {reason}; {hint}")
    finally:
        studies.close()
        store.close()


if __name__ == "__main__":
    main()
