"""On Gradio's own server the routes come before its pages, behind its login, and under a proxy's path."""

from __future__ import annotations

import threading
import time

import gradio as gr
import httpx
import pytest

from rcr_core.trace import trace_bytes
from tests.app.web_samples import OWNER, headers, sample_trace, unpack, wait_until


@pytest.fixture
def serve(routes):
    """`serve(**launch)`: a Gradio page with the routes on a local port, and an HTTP client for it."""
    open_ones = []

    def start(allowed=lambda request: True, **launch):
        with gr.Blocks(analytics_enabled=False) as page:
            gr.Markdown("the page")
        page.launch(
            server_name="127.0.0.1",
            prevent_thread_lock=True,
            quiet=True,
            run_history=False,
            app_kwargs={"routes": routes(allowed=allowed)},
            **launch,
        )
        client = httpx.Client(base_url=page.local_url.rstrip("/"), headers=headers(), timeout=20)
        open_ones.extend((client, page))
        return client

    yield start
    for one in open_ones:
        one.close()


def test_the_routes_come_first_and_gradio_keeps_its_own(serve, store):
    client = serve()
    run = store.add(OWNER, sample_trace(4), label="four")
    assert client.get("/scope/runs").json()["runs"][0]["id"] == run.id
    assert client.get("/scope/nothing").json()["error"] == "there is no such address"
    assert client.put("/scope/runs").status_code == 405
    assert "text/html" in client.get("/").headers["content-type"]
    assert "app_id" in client.get("/gradio_api/app_id").json()


def test_files_pass_gradios_compression_unharmed(serve, store, front):
    (front / "long.js").write_text("export const words = 'tau and rho';\n" * 100)
    client = serve()
    script = client.get("/scope/front/v1/long.js")
    assert script.headers["content-encoding"] in ("br", "gzip")
    assert script.text == "export const words = 'tau and rho';\n" * 100
    held = {"If-None-Match": script.headers["etag"]}
    assert client.get("/scope/front/v1/long.js", headers=held).status_code == 304
    data = trace_bytes(sample_trace(4))
    told = client.post("/scope/runs?label=sent", content=data).json()
    file = client.get(f"/scope/runs/{told['id']}/trace.rcr", headers={"Range": "bytes=100-299"})
    assert (file.status_code, file.content) == (206, data[100:300])
    assert "content-encoding" not in file.headers


def test_the_routes_answer_under_the_path_of_a_proxy(serve, store):
    """Some proxies pass the prefix on, others take it off."""
    client = serve(root_path="/tools/scope-page")
    store.add(OWNER, sample_trace(4), label="four")
    for prefix in ("", "/tools/scope-page"):
        assert client.get(f"{prefix}/scope/runs").json()["runs"][0]["label"] == "four"


def test_gradios_login_opens_the_routes(serve):
    def allowed(request):
        app = request.app
        names = (f"access-token-{app.cookie_id}", f"access-token-unsecure-{app.cookie_id}")
        return any(app.tokens.get(request.cookies.get(name)) for name in names)

    client = serve(allowed, auth=("someone", "a password"))
    assert client.get("/scope/runs").status_code == 401
    assert client.get("/scope/front/v1/main.js").status_code == 401
    client.post("/login", data={"username": "someone", "password": "another"})
    assert client.get("/scope/runs").status_code == 401
    client.post("/login", data={"username": "someone", "password": "a password"})
    assert client.get("/scope/runs").status_code == 200
    client.cookies.clear()
    assert client.get("/scope/runs").status_code == 401


def test_a_page_waits_on_the_real_server(serve, growing):
    run, script = growing(2, OWNER)
    wait_until(lambda: run.status == "prefill")
    client = serve()
    threading.Timer(0.4, script.release, [1]).start()
    began = time.monotonic()
    answer = client.get(f"/scope/runs/{run.id}/steps?from=0&wait=10&stamp=prefill.0")
    assert 0.2 < time.monotonic() - began < 5
    assert unpack(answer.content)[1]["to"] == 1


def test_a_page_that_is_gone_is_no_longer_waited_for(serve, growing, monkeypatch):
    run, _ = growing(2, OWNER)
    wait_until(lambda: run.status == "prefill")
    client = serve()
    asked = []
    monkeypatch.setattr("rcr_core.web.steps.stamp", lambda run: asked.append(1) or "prefill.0")
    with pytest.raises(httpx.ReadTimeout):
        client.get(f"/scope/runs/{run.id}/steps?from=0&wait=10", timeout=0.3)
    client.close()
    assert len(asked) > 3
    time.sleep(0.3)
    before = len(asked)
    time.sleep(0.3)
    assert len(asked) == before


def test_a_refused_upload_is_answered_though_its_body_is_not_read(serve):
    client = serve()
    answer = client.post("/scope/runs", content=b"x" * 300_000)
    assert answer.status_code == 413
    assert "200,000" in answer.json()["error"]
