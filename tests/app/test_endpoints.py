"""A script or an agent starts a run, waits for it, and gets its trace; whatever is wrong is said in words."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

import app
from rcr_core.bundled.examples import EXAMPLES_FOLDER
from rcr_core.policies import POLICIES
from rcr_core.runs import RunStore
from rcr_core.trace import read_trace

PICTURE = EXAMPLES_FOLDER / "1-four-objects.png"
LONG = EXAMPLES_FOLDER / "8-fourteen-objects.png"
ENDPOINTS = {  # name -> its inputs
    "/list_policies": [],
    "/list_models": [],
    "/choose_model": ["model"],
    "/start_run": ["image", "prompt", "policy", "settings", "max_new_tokens", "more", "max_pixels"],
    "/wait_for_run": ["run", "key", "timeout"],
    "/fetch_trace": ["run", "key"],
    "/stop_run": ["run", "key"],
}
UNKNOWN = "there is no such run"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def address():
    store = RunStore()
    options = app.parser().parse_args(["--port", str(free_port())])
    page = app.serve(options, store, prevent_thread_lock=True)
    yield page.local_url
    page.close()
    store.close()


@pytest.fixture(scope="module")
def client(address, tmp_path_factory):
    return Client(address, verbose=False, download_files=tmp_path_factory.mktemp("fetched"))


def start(client, picture: Path = PICTURE, policy: str = "rcr", settings=None, count: float = 12):
    """A run that was started: its id and its key."""
    given = {"image": handle_file(picture), "prompt": "", "policy": policy}
    return client.predict(**given, settings=settings or {}, max_new_tokens=count, api_name="/start_run")


@pytest.fixture(scope="module")
def done(client):
    """The id and the key of a run that is over."""
    run = start(client, count=1)
    client.predict(**run, timeout=60, api_name="/wait_for_run")
    return run


def test_the_endpoints_are_these(client):
    told = client.view_api(return_format="dict", print_info=False)
    named = {
        name: [each["parameter_name"] for each in about["parameters"]]
        for name, about in told["named_endpoints"].items()
    }
    assert named == ENDPOINTS
    assert told["unnamed_endpoints"] == {}


def test_every_policy_is_listed_in_words(client):
    listed = client.predict(api_name="/list_policies")
    assert [one["name"] for one in listed] == list(POLICIES)
    assert all(one["title"] and one["summary"] for one in listed)


def test_a_run_from_its_start_to_its_file(client):
    run = start(client, settings={"select": 64, "rho": 0.6}, count=12)
    told = client.predict(**run, timeout=60, api_name="/wait_for_run")
    assert (told["status"], told["steps"], told["stop_reason"]) == ("done", 12, "length")
    assert told["settings"]["select"] == 64
    trace = read_trace(client.predict(**run, api_name="/fetch_trace"))
    assert (trace.steps, trace.text, trace.meta.policy) == (12, told["text"], "rcr")


def test_a_run_is_held_against_the_uncompressed_one_from_the_same_address(client):
    for policy in ("full", "rcr"):
        run = start(client, policy=policy, count=12)
        told = client.predict(**run, timeout=60, api_name="/wait_for_run")
    assert 0 < told["fidelity"] <= 1 and told["reference"] is None


def test_several_images_stand_in_one_prompt(client):
    given = {"image": handle_file(PICTURE), "prompt": "", "policy": "rcr", "settings": {}}
    more = [handle_file(LONG), handle_file(PICTURE)]
    run = client.predict(**given, max_new_tokens=1, more=more, api_name="/start_run")
    client.predict(**run, timeout=60, api_name="/wait_for_run")
    trace = read_trace(client.predict(**run, api_name="/fetch_trace"))
    assert len(trace.pictures) == len(trace.meta.image_size) == 3
    assert trace.pictures[0].tobytes() == trace.pictures[2].tobytes() != trace.pictures[1].tobytes()


def test_images_are_scaled_down_to_what_is_asked_for(client):
    given = {"image": handle_file(PICTURE), "prompt": "", "policy": "rcr", "settings": {}}
    run = client.predict(**given, max_new_tokens=1, max_pixels=25_600, api_name="/start_run")
    client.predict(**run, timeout=60, api_name="/wait_for_run")
    trace = read_trace(client.predict(**run, api_name="/fetch_trace"))
    assert trace.meta.image_size == ((160, 160),) and len(trace.patch_position) == 100


def test_more_tokens_than_the_model_holds_end_the_run_in_words(client):
    run = start(client, count=4096)
    told = client.predict(**run, timeout=30, api_name="/wait_for_run")
    assert (told["status"], told["steps"]) == ("error", 0)
    assert "more than the 4096 that bundled-captioner can hold" in str(told["error"])


def test_a_prompt_and_a_policy_of_ones_own(client):
    given = {"image": handle_file(PICTURE), "prompt": "Which colours are there?", "policy": "full"}
    run = client.predict(**given, settings={}, max_new_tokens=2, api_name="/start_run")
    told = client.predict(**run, timeout=60, api_name="/wait_for_run")
    assert (told["prompt"], told["policy"], told["steps"]) == ("Which colours are there?", "full", 2)


def test_waiting_ends_after_its_time_and_a_stopped_run_keeps_its_steps(client):
    run = start(client, LONG, count=320)
    began = time.monotonic()
    told = client.predict(**run, timeout=0.5, api_name="/wait_for_run")
    assert time.monotonic() - began < 5
    assert told["status"] in ("loading", "prefill", "decoding")
    while not client.predict(**run, timeout=0, api_name="/wait_for_run")["steps"]:
        time.sleep(0.05)
    client.predict(**run, api_name="/stop_run")
    told = client.predict(**run, timeout=5, api_name="/wait_for_run")
    assert told["status"] == "stopped" and 0 < told["steps"] < 200
    trace = read_trace(client.predict(**run, api_name="/fetch_trace"))
    assert (trace.steps, trace.meta.stop_reason) == (told["steps"], "stopped")


@pytest.mark.parametrize("endpoint", ["/wait_for_run", "/fetch_trace", "/stop_run"])
@pytest.mark.parametrize("wrong", ["key", "run"])
def test_the_key_is_the_permission(client, done, endpoint, wrong):
    for other in ("another", ""):
        with pytest.raises(AppError, match=UNKNOWN):
            client.predict(**{**done, wrong: other}, api_name=endpoint)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "quests"}, "quests is not in the list of choices"),
        ({"settings": {"select": 0}}, "select must be a whole number in"),
        ({"settings": {"rank": 2.5}}, "rank must be a whole number in"),
        ({"settings": {"selekt": 3}}, "unknown setting 'selekt' .known settings: .*select"),
        ({"settings": [1, 2]}, "settings must be an object of names and values, got list"),
        ({"count": 5000}, "max_new_tokens must be in .0, 4096., got 5000"),
        ({"count": 2.5}, "max_new_tokens must be a whole number, got 2.5"),
        ({"count": None}, "max_new_tokens must be a whole number, got None"),
        ({"picture": Path(__file__)}, "test_endpoints.py is not a picture that can be read"),
    ],
)
def test_what_is_wrong_is_said(client, given, words):
    with pytest.raises(AppError, match=words):
        start(client, **given)


@pytest.mark.parametrize("timeout", [-1, "soon", None])
def test_a_time_to_wait_must_be_one(client, done, timeout):
    with pytest.raises(AppError, match="timeout must be a number of seconds"):
        client.predict(**done, timeout=timeout, api_name="/wait_for_run")


def test_without_a_picture_nothing_starts(client):
    given = {"image": None, "prompt": "", "policy": "rcr", "settings": {}, "max_new_tokens": 1}
    with pytest.raises(AppError, match="there is no picture yet"):
        client.predict(**given, api_name="/start_run")


def test_help_names_every_option(capsys):
    with pytest.raises(SystemExit) as ended:
        app.main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: app.py")
    for option in (
        "--model",
        "--device",
        "--dtype",
        "--host",
        "--port",
        "--auth",
        "--max-runs",
        "--mcp",
        "--max-prompt-tokens",
    ):
        assert option in said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--auth", "nobody"], "a login is USER:PASSWORD"),
        (["--auth", ":secret"], "a login is USER:PASSWORD"),
        (["--port", "99999"], "a port is a whole number in [1, 65535], got '99999'"),
        (["--port", "http"], "a port is a whole number"),
        (["--max-runs", "0"], "it must be a whole number, 1 or more, got '0'"),
    ],
)
def test_wrong_options_are_named(capsys, given, words):
    with pytest.raises(SystemExit) as ended:
        app.main(given)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_login_may_hold_colons():
    assert app.parser().parse_args(["--auth", "me:a:b"]).auth == ("me", "a:b")


def test_mcp_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match='pip install "gradio.mcp."'):
        app.main(["--mcp"])


def test_a_port_in_use_is_told_in_one_line(address, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    port = address.rstrip("/").rsplit(":", 1)[1]
    with pytest.raises(SystemExit) as ended:
        app.main(["--port", port])
    said = str(ended.value.code)
    assert f"cannot serve on 127.0.0.1:{port}" in said and "--port" in said
    assert "\n" not in said


def test_a_public_link_is_never_made(monkeypatch):
    """Whatever the environment asks of Gradio."""
    given = {}
    monkeypatch.setattr(app.gr.Blocks, "launch", lambda page, **options: given.update(options))
    monkeypatch.setattr(app.Workbench, "load", lambda workbench: None)
    app.serve(app.parser().parse_args([]), RunStore())
    assert given["share"] is False
    assert given["server_name"] == "127.0.0.1"
    assert given["run_history"] is False


def test_ctrl_c_ends_the_server_at_once_in_the_midst_of_a_run(tmp_path):
    """Nothing that was uploaded or fetched is left behind."""
    port, there = free_port(), {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-u", "app.py", "--port", str(port)]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=Path(app.__file__).parent, env=there, **piped) as server:
        said = server.stdout.readline()
        assert said == f"RCR Scope is at http://127.0.0.1:{port}/\n"  # and no warning before it
        client = Client(f"http://127.0.0.1:{port}/", verbose=False)
        run = start(client, LONG, count=320)
        while not client.predict(**run, timeout=0, api_name="/wait_for_run")["steps"]:
            time.sleep(0.05)
        client.predict(**run, api_name="/fetch_trace")
        assert list(tmp_path.iterdir())
        began = time.monotonic()
        server.send_signal(signal.SIGINT)
        try:
            server.wait(30)
        finally:
            server.kill()  # whoever fails here must not wait for it for ever
        took = time.monotonic() - began
        rest = server.stdout.read()
    print(f"\nthe server ended {took:.1f} s after Ctrl+C (bar 3)")
    assert took < 6
    assert server.returncode == 0
    assert "Traceback" not in rest and "terminate" not in rest
    assert list(tmp_path.iterdir()) == []
