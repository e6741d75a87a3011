"""Fixtures of the web routes' tests: a store, and a client on the routes over it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from rcr_core.runs import RunStore
from rcr_core.serving import Workbench
from rcr_core.serving.studies import Studies
from rcr_core.web import scope_routes
from tests.app.web_samples import OTHER, OWNER, ScriptedRun, headers, wait_until

MAX_TRACE_BYTES = 200_000


@pytest.fixture
def store():
    store = RunStore()
    yield store
    store.close()


@pytest.fixture
def front(tmp_path) -> Path:
    """A front end's folder, with a secret beside it."""
    folder = tmp_path / "front"
    (folder / "views").mkdir(parents=True)
    (folder / "main.js").write_text("export const ready = true;\n")
    (folder / "views" / "scope.css").write_text("body { margin: 0 }\n")
    (folder / "notes.txt").write_text("not for the browser")
    (folder / ".hidden.js").write_text("hidden")
    (tmp_path / "secret.js").write_text("secret")
    (folder / "leak.js").symlink_to(tmp_path / "secret.js")
    (tmp_path / "plotly.min.js").write_text("/* plotly */")
    return folder


@pytest.fixture
def routes(store, front):
    """`routes(**changes)`: the routes over the store; `changes` replace arguments of `scope_routes`."""

    def make(**changes):
        arguments = {
            "allowed": lambda request: True,
            "front": front,
            "front_version": "v1",
            "plotly_js": front.parent / "plotly.min.js",
            "figures": {"drift": lambda trace: json.dumps({"data": [trace.steps], "layout": {}})},
            "tables": {"steps": lambda trace: f"step,word\n0,{trace.meta.token_text[0]}\n"},
            "server": lambda: {"device": "cpu"},
            "max_trace_bytes": MAX_TRACE_BYTES,
        }
        return scope_routes(store, **{**arguments, **changes})

    return make


@pytest.fixture
def client(routes):
    with TestClient(Starlette(routes=routes()), headers=headers()) as client:
        yield client


@pytest.fixture
def stranger(routes):
    """A client that sends no token of its own."""
    with TestClient(Starlette(routes=routes())) as client:
        yield client


@pytest.fixture
def growing(store):
    """`growing(count, owner)`: a run in the store and the script that releases its steps."""
    scripts = []

    def start(count: int, owner: str, **changes):
        scripts.append(ScriptedRun(count, **changes))
        script = scripts[-1]
        return store.start(owner, lambda: script, policy="rcr", label="a picture"), script

    yield start
    for script in scripts:
        script.stop()


@pytest.fixture(scope="module")
def workbench():
    """The bundled captioner, loaded, and a store of its own."""
    store = RunStore()
    workbench = Workbench(store=store)
    workbench.load()
    workbench.captioner()
    yield workbench
    store.close()


@pytest.fixture(scope="module")
def finished(workbench):
    """A study of two scenes under three policies, at its end; and the registry that holds it."""
    studies = Studies(workbench)
    asked = {"count": 2, "policies": ["full", "bacon", "rcr"], "max_new_tokens": 40}
    study = studies.start(OWNER, asked)
    assert study.over.wait(120)
    yield studies, study
    studies.close()


@pytest.fixture
def studies(workbench):
    """A registry of studies on that model, empty at first."""
    studies = Studies(workbench)
    yield studies
    studies.close()


@pytest.fixture
def settled(workbench):
    """No test leaves runs behind that the next one would have to wait for."""
    yield
    for run in (*workbench.store.list(OWNER), *workbench.store.list(OTHER)):
        run.stop()
        wait_until(lambda run=run: run.finished)
