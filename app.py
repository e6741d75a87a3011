"""The page of RCR Scope: builds it, wires its events, and adds the routes of the traces."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import gradio as gr
import plotly
from starlette.middleware import Middleware

from rcr_core.errors import StudyError
from rcr_core.page import build_endpoints, build_rail
from rcr_core.runs import RunStore, StoreLimits
from rcr_core.serving import Form, Scripts, Workbench
from rcr_core.serving.examples import add_examples
from rcr_core.serving.options import parser, studies_of
from rcr_core.serving.studies import Studies
from rcr_core.web import scope_routes
from rcr_core.web.compression import CompressedPage
from rcr_core.web.findings import StudyViews
from rcr_core.web.login import logged_in
from rcr_core.web.studies import StudyRoutes
from viz.front import FRONT, PLOTLY_JS, STYLES, VERSION, mounting
from viz.guide import guide_sections
from viz.study.figures import STUDY_FIGURES, study_figure_json
from viz.study.files import table_csv, table_latex
from viz.study.names import head_of
from viz.study.numbers import ends, shown
from viz.study.report import report_html
from viz.tables import TABLES
from viz.trajectories import FIGURES, figure_json

MAX_UPLOAD = "64mb"


THEME = gr.themes.Base(
    primary_hue="violet",
    neutral_hue="slate",
    font=[gr.themes.LocalFont("IBM Plex Sans", (400, 700)), "system-ui", "sans-serif"],
    font_mono=["ui-monospace", "monospace"],
    spacing_size="sm",
    radius_size="sm",
    text_size="sm",
)
HEADING = (
    "<h1>RCR Scope</h1><p>what a compressed KV cache keeps of an image, drops, and looks at, step by step</p>"
)


def build_page(workbench: Workbench) -> gr.Blocks:
    """The page: the Scope with its form, the runs, the guide, and the endpoints."""
    form = Form(workbench)
    page = gr.Blocks(title="RCR Scope", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400))
    with page:
        gr.HTML(HEADING, elem_id="heading", apply_default_css=False)
        with gr.Tabs(elem_id="rooms"):
            with gr.Tab("Scope", id="scope"), gr.Row(elem_id="bench"):
                with gr.Column(scale=0, min_width=288, elem_id="rail"):
                    build_rail(page, form)
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
        front_version=VERSION,
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
        studies.workbench.close()


if __name__ == "__main__":
    main()
