"""The list tells a browser what runs it has, in what order, how each stands, and what the server is."""

from __future__ import annotations

import json
import re

from rcr_core.errors import PromptError
from tests.app.web_samples import OTHER, OWNER, headers, sample_trace, wait_until


def test_own_runs_come_newest_first_and_then_the_public_ones(client, stranger, store):
    store.add("", sample_trace(2), label="example", kind="example", public=True)
    first = store.add(OWNER, sample_trace(2), label="first")
    store.add(OTHER, sample_trace(2), label="foreign")
    store.add(OWNER, sample_trace(2), label="second")
    listed = client.get("/scope/runs").json()
    assert [run["label"] for run in listed["runs"]] == ["second", "first", "example"]
    assert [run["mine"] for run in listed["runs"]] == [True, True, False]
    assert listed["runs"][1]["key"] == first.key
    assert "key" not in listed["runs"][2]
    assert listed["server"] == {"device": "cpu"}
    foreign = stranger.get("/scope/runs", headers=headers(OTHER)).json()
    assert [run["label"] for run in foreign["runs"]] == ["foreign", "example"]


def test_a_summary_says_what_was_asked_and_what_came_of_it(client, stranger, store):
    run = store.add(OWNER, sample_trace(4), label="four")
    told = client.get(f"/scope/runs/{run.id}").json()
    assert (told["id"], told["kind"], told["label"], told["policy"]) == (run.id, "file", "four", "rcr")
    assert (told["status"], told["place"], told["steps"], told["stop_reason"]) == ("done", 0, 4, "length")
    assert (told["model"], told["prompt"], told["subject"]) == ("tiny", "Déscribe.", run.subject)
    assert re.fullmatch("[0-9a-f]{24}", told["subject"])
    assert (told["prefix"], told["kept"]) == (9, 3)
    assert told["text"] == " w0猫 w1猫 w3猫"  # the third token completes no character
    assert told["error"] is None and told["truth"] is None and told["reference"] is None
    assert (told["mine"], told["key"]) == (True, run.key)
    by_key = stranger.get(f"/scope/runs/{run.id}?key={run.key}").json()
    assert by_key["mine"] is False
    assert "key" not in by_key


def test_fidelity_is_held_against_the_full_run_of_the_same_subject_that_one_may_see(client, stranger, store):
    run = store.add(OWNER, sample_trace(4), label="rcr")
    foreign = store.add(OTHER, sample_trace(6, policy="full"), label="full")
    assert client.get(f"/scope/runs/{run.id}").json()["fidelity"] is None
    own = store.add(OWNER, sample_trace(6, policy="full"), label="full")
    told = client.get(f"/scope/runs/{run.id}").json()
    # Words of letters and digits: w0 w1 w3 against w0 w1 w3 w4 w5, so precision 1 and recall 3/5.
    assert abs(told["fidelity"] - 0.75) < 1e-9
    assert told["reference"] == own.id != foreign.id


def test_a_shared_run_is_told_with_its_fidelity(client, stranger, store):
    """The reference stays private: its number is told, not its name."""
    run = store.add(OWNER, sample_trace(4), label="rcr")
    store.add(OWNER, sample_trace(6, policy="full"), label="full")
    told = stranger.get(f"/scope/runs/{run.id}?key={run.key}").json()
    assert abs(told["fidelity"] - 0.75) < 1e-9
    assert told["reference"] is None


def test_a_run_that_failed_says_why(client, store):
    def make():
        raise PromptError("the prompt is empty", "write a question")

    run = store.start(OWNER, make, policy="rcr", label="empty")
    wait_until(lambda: run.finished)
    told = client.get(f"/scope/runs/{run.id}").json()
    assert told["status"] == "error"
    assert told["error"] == {"message": "the prompt is empty", "hint": "write a question"}
    for reading in ("trace.rcr", "figures/drift", "tables/steps.csv", "layers?from=0&to=1"):
        answer = client.get(f"/scope/runs/{run.id}/{reading}")
        assert answer.status_code == 409
        assert answer.json() == {"error": "this run has no trace", "hint": "write a question"}
    length, data = (answer := client.get(f"/scope/runs/{run.id}/steps").content)[:8], answer[8:]
    header = json.loads(data[: int.from_bytes(length, "little")])
    state = json.loads(header["__metadata__"]["state"])
    assert state["error"] == {"message": "the prompt is empty", "hint": "write a question"}


def test_stopping_answers_with_the_summary_and_keeps_what_was_recorded(client, growing):
    run, script = growing(9, OWNER)
    script.release(2)
    wait_until(lambda: run.steps == 2)
    assert client.post(f"/scope/runs/{run.id}/stop").json()["id"] == run.id
    wait_until(lambda: run.finished)
    told = client.get(f"/scope/runs/{run.id}").json()
    assert (told["status"], told["steps"]) == ("stopped", 2)
    assert client.post(f"/scope/runs/{run.id}/stop").json()["status"] == "stopped"


def test_a_dropped_run_is_gone(client, store):
    run = store.add(OWNER, sample_trace(2), label="old")
    answer = client.delete(f"/scope/runs/{run.id}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert client.delete(f"/scope/runs/{run.id}").status_code == 404
    assert client.get("/scope/runs").json()["runs"] == []


def test_a_head_request_has_the_headers_alone(client, store):
    run = store.add(OWNER, sample_trace(2), label="two")
    answer = client.head(f"/scope/runs/{run.id}/trace.rcr")
    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(client.get(f"/scope/runs/{run.id}/trace.rcr").content)
