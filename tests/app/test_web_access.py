"""Nobody sees or ends a run without its token or key, logs in by accident, or learns that a run exists."""

from __future__ import annotations

import logging

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from rcr_core.errors import SettingsError
from tests.app.web_samples import OTHER, OWNER, headers, sample_trace, wait_until

READINGS = (
    "",
    "/steps",
    "/layers?from=0&to=2",
    "/trace.rcr",
    "/image",
    "/figures/drift",
    "/tables/steps.csv",
)
BAD_TOKENS = (
    "",
    "short",
    "a" * 15,
    "a" * 65,
    "a b" * 8,
    "<script>alert(1)</script>",
    "ü" * 16,
    "a" * 20 + "\n",
)


def path(run, reading: str = "") -> str:
    return f"/scope/runs/{run.id}{reading}"


def with_key(run, reading: str) -> str:
    return path(run, reading) + ("&" if "?" in reading else "?") + f"key={run.key}"


@pytest.fixture
def run(store):
    return store.add(OWNER, sample_trace(3), label="mine")


@pytest.fixture
def public(store):
    return store.add("", sample_trace(3), label="example", kind="example", public=True)


@pytest.mark.parametrize("reading", READINGS)
def test_owner_and_key_read_a_run_and_nobody_else_does(client, stranger, run, reading):
    assert client.get(path(run, reading)).status_code == 200
    assert stranger.get(with_key(run, reading)).status_code == 200
    assert stranger.get(with_key(run, reading), headers=headers(OTHER)).status_code == 200
    assert stranger.get(path(run, reading), headers=headers(OTHER)).status_code == 404
    assert stranger.get(path(run, reading)).status_code == 400
    wrong = with_key(run, reading).replace(run.key, "x" * len(run.key))
    assert stranger.get(wrong).status_code == 404


@pytest.mark.parametrize("reading", READINGS)
def test_everyone_with_a_token_reads_a_public_run(stranger, public, reading):
    assert stranger.get(path(public, reading), headers=headers(OTHER)).status_code == 200


@pytest.mark.parametrize("reading", READINGS)
def test_a_foreign_run_looks_like_one_that_never_was(stranger, store, run, reading):
    foreign = stranger.get(path(run, reading), headers=headers(OTHER))
    never = stranger.get(path(run, reading).replace(run.id, "AAAAAAAAAAAA"), headers=headers(OTHER))
    store.drop(run.id, OWNER)
    dropped = stranger.get(path(run, reading), headers=headers(OWNER))
    assert foreign.status_code == never.status_code == dropped.status_code == 404
    assert foreign.content == never.content == dropped.content
    assert dict(foreign.headers) == dict(never.headers)


@pytest.mark.parametrize("ending", ["stop", "drop"])
def test_only_the_owner_ends_a_run(client, stranger, store, growing, ending):
    run, script = growing(9, OWNER)
    wait_until(lambda: run.status == "prefill")

    def end(who, address, **sent):
        if ending == "stop":
            return who.post(address.replace(run.id, f"{run.id}/stop"), **sent)
        return who.delete(address, **sent)

    assert end(stranger, path(run), headers=headers(OTHER)).status_code == 404
    assert end(stranger, path(run) + f"?key={run.key}").status_code == 400
    assert end(stranger, path(run) + f"?key={run.key}", headers=headers(OTHER)).status_code == 404
    assert run.status == "prefill"
    assert store.get(run.id, OWNER) is run
    answer = end(client, path(run))
    assert answer.status_code == (200 if ending == "stop" else 204)
    script.release(1)
    wait_until(lambda: run.status == "stopped")


def test_a_public_run_cannot_be_ended(client, public):
    assert client.post(path(public, "/stop")).status_code == 403
    assert client.delete(path(public)).status_code == 403
    assert client.get(path(public)).status_code == 200


@pytest.mark.parametrize("token", BAD_TOKENS)
def test_a_token_of_the_wrong_form_is_refused_and_not_repeated(stranger, run, token):
    sent = {"X-Scope-Owner": token.encode()}
    for answer in (stranger.get("/scope/runs", headers=sent), stranger.get(path(run), headers=sent)):
        assert answer.status_code == 400
        assert "X-Scope-Owner" in answer.json()["error"]
        assert not token or token not in answer.text


@pytest.mark.parametrize("token", ["a" * 16, "Z9_-" * 16])
def test_a_token_of_the_right_form_sees_an_empty_list(stranger, run, token):
    assert stranger.get("/scope/runs", headers={"X-Scope-Owner": token}).json()["runs"] == []


def test_who_is_not_logged_in_gets_nothing(store, routes, run):
    asked = []

    def allowed(request):
        asked.append(request.url.path)
        return False

    addresses = [path(run, reading) for reading in READINGS]
    addresses += [
        "/scope/runs",
        "/scope/front/v1/main.js",
        "/scope/plotly.min.js",
        "/scope/nothing",
        path(run, "/stop"),
    ]
    with TestClient(Starlette(routes=routes(allowed=allowed)), headers=headers()) as client:
        for address in addresses:
            answer = client.get(address)
            assert answer.status_code == 401, address
            assert answer.json()["error"] == "you are not logged in"
        assert client.post("/scope/runs", content=b"x").status_code == 401
        assert client.post(path(run, "/stop")).status_code == 401
        assert client.delete(path(run)).status_code == 401
    assert store.get(run.id, OWNER) is run
    assert len(asked) == len(addresses) + 3


@pytest.mark.parametrize("mode", ["cors", "no-cors"])
def test_a_page_of_another_site_can_ask_for_nothing(client, run, public, mode):
    from_there = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
    for address in ("/scope/runs", path(public), with_key(run, "/image")):
        assert client.get(address, headers=from_there).status_code == 403
    assert client.post(path(run, "/stop"), headers=from_there).status_code == 403
    assert client.post("/scope/runs", content=b"x", headers=from_there).status_code == 403
    assert client.delete(path(run), headers=from_there).status_code == 403


def test_a_link_on_another_site_may_lead_here_and_a_form_may_not(client, stranger, run):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert stranger.get(with_key(run, "/trace.rcr"), headers=link).status_code == 200
    assert client.post(path(run, "/stop"), headers=link).status_code == 403
    for site in ("same-origin", "same-site", "none"):
        assert client.get("/scope/runs", headers={"Sec-Fetch-Site": site}).status_code == 200


@pytest.mark.parametrize(
    "address",
    ["/scope/", "/scope/nothing", "/scope/runs/", "/scope/front", "/scope/front/v1", "/scope/runs/a/b"],
)
def test_an_unknown_address_is_a_json_404(client, address):
    answer = client.get(address, follow_redirects=False)
    assert answer.status_code == 404
    assert set(answer.json()) == {"error", "hint"}


def test_a_wrong_method_names_the_right_ones(client, run):
    answer = client.put("/scope/runs", content=b"x")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert client.post(path(run)).headers["allow"] == "DELETE, GET, HEAD"
    assert client.get(path(run, "/stop")).status_code == 405


def test_every_answer_forbids_guessing_its_type_and_most_forbid_keeping_it(client, run):
    addresses = [path(run, reading) for reading in READINGS]
    addresses += ["/scope/runs", "/scope/front/v1/main.js", "/scope/plotly.min.js", "/scope/nothing"]
    for address in addresses:
        assert client.get(address).headers["x-content-type-options"] == "nosniff", address
        assert "public" not in client.get(path(run)).headers["cache-control"]
    assert client.delete(path(run, "/x")).headers["x-content-type-options"] == "nosniff"
    for address in ("/scope/runs", path(run), path(run, "/steps"), path(run, "/figures/drift")):
        assert client.get(address).headers["cache-control"] == "no-store"


def test_an_unexpected_failure_is_named_by_its_type_only_and_logged(routes, run, caplog):
    def broken(trace):
        raise RuntimeError("the password is 1234")

    def refusing(trace):
        raise SettingsError("this trace has no tau", "choose another policy")

    made = routes(figures={"broken": broken, "refusing": refusing})
    with TestClient(Starlette(routes=made), headers=headers()) as client:
        with caplog.at_level(logging.ERROR):
            failed = client.get(path(run, "/figures/broken"))
        refused = client.get(path(run, "/figures/refusing"))
    assert failed.status_code == 500
    assert "RuntimeError" in failed.json()["error"]
    assert "1234" not in failed.text
    assert "1234" in caplog.text
    assert refused.status_code == 409
    assert refused.json() == {"error": "this trace has no tau", "hint": "choose another policy"}
