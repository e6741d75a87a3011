"""Nobody sees, stops or drops what is somebody else's, and a login guards every address of the server."""

from __future__ import annotations

import socket

import httpx
import pytest

import app
from rcr_core.bundled.examples import EXAMPLES_FOLDER
from rcr_core.runs import RunStore
from rcr_core.web import scope_routes
from tests.app.browser.conftest import Watched, free_port
from tests.app.browser.form import (
    choose_scene,
    expecting,
    leave,
    notice,
    own_runs,
    owner,
    press_run,
    short_runs,
    wait_for_end,
)

LOGIN = {"username": "someone", "password": "a pass: word"}
EXAMPLE = "5-ten-objects-rcr"
ASK = """
async ([method, path]) => (await fetch(path, { method, headers: { "X-Scope-Owner": rcrPage.owner } })).status
"""
READINGS = ("", "/steps", "/layers?from=0&to=1", "/trace.rcr", "/image", "/figures/tau", "/tables/steps.csv")


@pytest.fixture
def two(page, watched, address, store):
    """The page of somebody who has just run a pair, and that of a stranger."""
    stranger = watched.page(address)
    short_runs(page)
    choose_scene(page, 0)
    press_run(page)
    wait_for_end(page)
    yield page, stranger
    for each in (page, stranger):
        leave(store, each)


def test_a_stranger_neither_sees_nor_ends_a_run_whose_id_is_known(two, store, watched):
    mine, stranger = two
    assert owner(mine) != owner(stranger)
    run = own_runs(store, mine)[-1]
    assert mine.evaluate(ASK, ["GET", f"/scope/runs/{run.id}"]) == 200
    with expecting(watched, "status of 404"):
        for reading in READINGS:
            assert stranger.evaluate(ASK, ["GET", f"/scope/runs/{run.id}{reading}"]) == 404
        assert stranger.evaluate(ASK, ["POST", f"/scope/runs/{run.id}/stop"]) == 404
        assert stranger.evaluate(ASK, ["DELETE", f"/scope/runs/{run.id}"]) == 404
    assert store.get(run.id, owner(mine)) is run
    assert own_runs(store, stranger) == []


def test_an_address_with_a_foreign_id_shows_nothing_and_says_why(two, store, watched):
    mine, stranger = two
    run = own_runs(store, mine)[-1]
    with expecting(watched, "status of 404"):
        stranger.evaluate("(id) => { location.hash = `#a=${id}`; }", run.id)
        stranger.wait_for_selector(".scope-notice")
    assert "is not on the server" in notice(stranger) and "another browser" in notice(stranger)
    assert run.trace().text not in stranger.content()
    assert stranger.evaluate("rcrScope.state.a") is None


def test_the_lists_of_two_people_have_nothing_in_common_but_the_examples(two, store):
    mine, stranger = two
    rows = (
        "(text) => [...document.querySelectorAll('#runs tr')].filter((row) => row.textContent.includes(text))"
    )
    for who in two:
        who.get_by_role("tab", name="Runs").click()
        who.wait_for_function(f"({rows})('5-ten-objects').length === 3")
    label = own_runs(store, mine)[0].label
    mine.wait_for_function(f"({rows})('{label}').length === 3")
    assert stranger.evaluate(f"({rows})('{label}').length") == 0


@pytest.fixture(scope="module")
def guarded():
    """A server that asks for a login."""
    store = RunStore()
    login = f"{LOGIN['username']}:{LOGIN['password']}"
    options = app.parser().parse_args(["--port", str(free_port()), "--auth", login])
    page = app.serve(options, store, prevent_thread_lock=True)
    yield page.local_url.rstrip("/")
    page.close()
    store.close()


def addresses() -> list[tuple[str, str]]:
    """Method and path of everything that the routes under /scope can do, with an example's id."""
    front = {"front": app.FRONT, "front_version": app.VERSION, "plotly_js": app.PLOTLY_JS}
    nothing = {"allowed": None, "server": dict, **front}
    routes = scope_routes(RunStore(), figures=app.FIGURES, tables=app.TABLES, **nothing)
    found = []
    for route in routes:
        path = route.path.replace("{id}", EXAMPLE)
        for placeholder, value in (
            ("{name}.csv", "steps.csv"),
            ("{name}", "tau"),
            ("{version}", app.VERSION),
            ("{path:path}", "main.js"),
        ):
            path = path.replace(placeholder, value)
        found += [(method, path) for method in route.app._handlers or ["GET"]]
    return found


def test_every_route_is_closed_without_the_login_and_open_with_it(guarded):
    asked = addresses()
    assert len(asked) > 20
    sent = {"headers": {"X-Scope-Owner": "some-browsers-token"}, "params": {"from": 0, "to": 1}}
    with httpx.Client(base_url=guarded, **sent) as client:
        for method, path in asked:
            assert client.request(method, path).status_code == 401, path
        client.post("/login", data={**LOGIN, "password": "another"})
        assert client.get("/scope/runs").status_code == 401
        assert client.post("/login", data=LOGIN).status_code == 200
        for method, path in asked:
            assert client.request(method, path).status_code != 401, path
        assert client.get(f"/scope/runs/{EXAMPLE}").json()["steps"] > 0
        client.cookies.clear()
        assert client.get("/scope/runs").status_code == 401


def test_gradios_own_endpoints_are_closed_too(guarded):
    with httpx.Client(base_url=guarded) as client:
        for path in ("/config", "/gradio_api/info", "/gradio_api/file=/etc/hostname"):
            assert client.get(path).status_code == 401, path
        for path in ("/gradio_api/call/start_run", "/gradio_api/queue/join", "/gradio_api/upload"):
            assert client.post(path, json={"data": []}).status_code == 401, path


def test_a_person_logs_in_and_the_whole_page_works(chromium, guarded):
    watched = Watched(chromium, guarded)
    page = watched.context().new_page()
    page.goto(guarded)
    page.get_by_label("username").fill(LOGIN["username"])
    page.get_by_label("password").fill(LOGIN["password"])
    page.get_by_role("button", name="Login").click()
    page.wait_for_selector(".scope-transport")
    short_runs(page)
    choose_scene(page, 0)
    press_run(page)
    wait_for_end(page)
    assert page.evaluate("rcrScope.steps.a") == 6
    page.context.close()
    watched.errors[:] = [error for error in watched.errors if "401" not in error]  # before the login
    watched.check()


def test_files_of_the_server_cannot_be_had_by_their_path(address):
    with httpx.Client(base_url=address) as client:
        for path in ("/etc/hostname", app.__file__, f"{EXAMPLES_FOLDER}/../../../etc/passwd"):
            assert client.get(f"/gradio_api/file={path}").status_code in (403, 404)
        picture = {"path": "/etc/hostname", "meta": {"_type": "gradio.FileData"}}
        asked = client.post("/gradio_api/call/start_run", json={"data": [picture, "", "rcr", {}, 1]})
        answer = client.get(f"/gradio_api/call/start_run/{asked.json()['event_id']}").text
    assert "event: error" in answer and "run" not in answer


def test_the_server_listens_on_the_local_address_only(address):
    port = httpx.URL(address).port
    socket.create_connection(("127.0.0.1", port), 2).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 2)
    assert app.parser().parse_args([]).host == "127.0.0.1"
