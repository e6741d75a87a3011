"""A run of the bundled model, followed over the routes alone: what arrives is the trace that it leaves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.captioning import Captioner, CaptionRequest
from rcr_core.models import load_model, prepare
from rcr_core.runs.truth import scene_facts
from rcr_core.settings import Settings
from rcr_core.trace import read_trace
from tests.app.web_samples import OWNER, headers, unpack

STEPS = 40  # tokens, so that two objects of the picture are named


@pytest.fixture(scope="module")
def captioner():
    torch.set_num_threads(1)
    return Captioner(load_model(MODEL_FOLDER, device="cpu"))


@pytest.fixture(scope="module")
def scene():
    return make_scene(9001, count=4)


@pytest.fixture
def run(store, captioner, scene):
    request = CaptionRequest(
        settings=Settings(select=32), max_new_tokens=STEPS, scene=scene_facts(scene), policy="rcr"
    )

    def make():
        prompt = prepare(captioner.loaded, [scene.image()], CAPTION_PROMPT, STEPS)
        return captioner.run(prompt, request)

    return store.start(OWNER, make, policy="rcr", label="four objects", scene=scene)


def test_following_a_run_gives_its_trace(client, run, scene):
    batches, state = [], {"to": 0, "stamp": ""}
    while not batches or state["status"] not in ("done", "stopped", "error"):
        query = {"from": state["to"], "wait": 10, "stamp": state["stamp"]}
        answer = client.get(f"/scope/runs/{run.id}/steps", params=query)
        batches.append(unpack(answer.content))
        state = batches[-1][1]
    assert (state["status"], state["to"]) == ("done", STEPS)
    trace = read_trace(client.get(f"/scope/runs/{run.id}/trace.rcr").content)
    filled = [arrays for _, state, arrays in batches if state["to"] > state["from"]]
    assert len(filled) > 3
    for name in filled[-1]:
        joined = np.concatenate([arrays[name] for arrays in filled])
        np.testing.assert_array_equal(joined, trace.arrays()[name], name)
    assert tuple(word for _, state, _ in batches for word in state["token_text"]) == trace.meta.token_text
    pages = [client.get(f"/scope/runs/{run.id}/layers?from={at}&to={at + 20}") for at in (0, 20)]
    for name, array in trace.arrays().items():
        if name in unpack(pages[0].content)[2]:
            joined = np.concatenate([unpack(page.content)[2][name] for page in pages])
            np.testing.assert_array_equal(joined, array, name)
    truth = state["truth"]
    assert truth["right"] >= 1 and truth["total"] == 4
    said = [trace.text[one["start"] : one["end"]] for one in truth["said"]]
    assert scene.objects[0].shape in said[0]


def test_its_file_opened_again_is_believed_and_graded_the_same(routes, store, run):
    while not run.finished:
        run.wait(STEPS + 1, 10)
    with TestClient(Starlette(routes=routes(max_trace_bytes=1 << 26)), headers=headers()) as client:
        file = client.get(f"/scope/runs/{run.id}/trace.rcr").content
        told = client.post("/scope/runs?label=again", content=file).json()
        assert told["truth"] == client.get(f"/scope/runs/{run.id}").json()["truth"]
        assert told["truth"]["right"] >= 1
        again = client.get(f"/scope/runs/{told['id']}/steps").content
        assert unpack(again)[1]["truth"] == store.get(run.id, OWNER).truth()
