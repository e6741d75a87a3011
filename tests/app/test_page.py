"""The page is served on this machine alone, asks no other host, and has a control for everything."""

from __future__ import annotations

import re

import httpx
import pytest

import app
from rcr_core.page.controls import picture_input
from rcr_core.policies import POLICIES
from rcr_core.runs import RunStore
from rcr_core.serving import PRESETS, Models, Workbench, setting_names
from rcr_core.settings import Settings
from tests.app.test_endpoints import free_port
from viz.front import VERSION

HARMLESS = (
    "https://gradio.app/",
    "https://github.com/",
    "https://raw.githubusercontent.com/",
)  # links, samples


@pytest.fixture(scope="module")
def served():
    store = RunStore()
    page = app.serve(app.parser().parse_args(["--port", str(free_port())]), store, prevent_thread_lock=True)
    yield page
    page.close()
    store.close()


@pytest.fixture(scope="module")
def components():
    """The page's components by their label, where they have one."""
    page = app.build_page(Workbench())
    return {label: block for block in page.blocks.values() if (label := getattr(block, "label", None))}


def test_it_is_served_with_its_front_end(served):
    assert served.local_url.startswith("http://127.0.0.1:")
    with httpx.Client(base_url=served.local_url) as client:
        page = client.get("/")
        assert (page.status_code, "RCR Scope" in page.text) == (200, True)
        modules = set(re.findall(r"import\(new URL\('([^']+)', root\)\)", client.get("/config").text))
        assert len(modules) == 3
        for module in modules:
            headers = client.get(f"/scope/front/{VERSION}/{module}").headers
            assert headers["content-type"].startswith("text/javascript")
            assert "immutable" in headers["cache-control"]
        assert len(client.get("/scope/plotly.min.js").content) > 1_000_000


def test_every_module_of_the_front_end_imports_what_is_there(served):
    with httpx.Client(base_url=served.local_url) as client:
        waiting = [f"/scope/front/{VERSION}/{name}.js" for name in ("main", "runs/runs", "study/study")]
        seen = set()
        while waiting:
            path = waiting.pop()
            seen.add(path)
            answer = client.get(path)
            assert answer.status_code == 200, path
            imported = re.findall(r'^(?:import|export) .*?"(\.[^"]+)"', answer.text, re.M)
            found = {httpx.URL("http://x" + path).join(name).path for name in imported}
            waiting += found - seen - set(waiting)
    assert len(seen) > 30


def test_it_asks_no_other_host(served):
    assert served.analytics_enabled is False
    page = httpx.get(served.local_url).text
    hosts = {
        url
        for url in re.findall(r"https?://[^\"'\s<>)\\]+", page)
        if not url.startswith(served.local_url[:-1])
    }
    assert all(url.startswith(HARMLESS) for url in hosts), hosts
    assert not re.search(r"<(?:script|link)[^>]+(?:src|href)=[\"']https?://", page)
    for style in re.findall(r"[\"']([^\"']*theme\.css[^\"']*)[\"']", page):
        assert "http" not in httpx.get(served.local_url + style.lstrip("./")).text


def test_every_setting_has_a_control_that_explains_itself(components):
    defaults = Settings().to_dict() | PRESETS[Workbench().preset]
    for name in setting_names():
        control = components[name]
        assert control.value == defaults[name]
        assert control.info and control.elem_id == f"set-{name}"
    assert components["max_new_tokens"].value == 320


def test_every_policy_can_be_chosen_and_b_may_be_none(components):
    names = [(policy.title, name) for name, policy in POLICIES.items()]
    assert components["A"].choices == names
    assert components["B"].choices == [*names, ("none", "")]
    assert components["Preset"].choices == [(name, name) for name in PRESETS]


def test_a_model_of_ones_own_brings_no_scenes():
    labels = {
        getattr(block, "label", None)
        for block in app.build_page(Workbench(Models(["own/model"]))).blocks.values()
    }
    assert "Scenes" not in labels and "Prompt" in labels


def test_the_guide_is_on_the_page(served):
    config = httpx.get(served.local_url + "config").json()
    texts = {one["props"].get("elem_id"): one["props"].get("value") for one in config["components"]}
    sections = {name: text for name, text in texts.items() if str(name).startswith("guide-")}
    assert len(sections) == 5 and all(len(text) > 200 for text in sections.values())


def test_a_picture_is_handed_on_as_it_came_in_every_session():
    """Gradio makes a new instance of a component that an event has updated."""
    picture = picture_input(height=170)
    again = picture.__class__(**picture.constructor_args)
    for one in (picture, again):
        assert one.preprocess(None) is None
        assert one.preprocess(app.gr.image_utils.ImageData(path="/a/b.png")) == "/a/b.png"
