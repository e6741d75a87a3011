"""What is compared with what: the same question about the same picture, whether run, opened or shipped."""

from __future__ import annotations

import numpy as np
import pytest

from rcr_core.bundled.examples import EXAMPLES_FOLDER
from rcr_core.captioning import CaptionRequest
from rcr_core.models import Placement, open_image
from rcr_core.runs import RunStore
from rcr_core.runs.subject import subject_of
from rcr_core.runs.summary import reference_of, summary
from rcr_core.serving import Models, Workbench
from rcr_core.serving.examples import add_examples
from rcr_core.serving.workbench import Question
from rcr_core.trace import read_trace, trace_bytes
from tests.core.stores import ANNA, ended, reached
from tests.core.trace_samples import PNG, small_meta, small_trace

LIMITS = {"max_new_tokens": 320, "repetition_penalty": 1.0}


def asked(image: bytes = PNG, **changes) -> str:
    """The subject of the small trace with some of its metadata changed."""
    meta = small_meta(**{"settings": LIMITS, **changes})
    return subject_of(small_trace(meta=meta, image=np.frombuffer(image, np.uint8)))


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "full"},
        {"settings": {**LIMITS, "select": 64, "tau0": 0.1}},
        {"dtype": "bfloat16", "device": "cuda"},
        {"token_text": ["B", None, None], "stop_reason": "stopped"},
        {"scene": None},
    ],
)
def test_what_may_differ_between_runs_that_are_compared(changes):
    assert asked(**changes) == asked()


def test_what_makes_runs_incomparable():
    subjects = [
        asked(),
        asked(PNG[:-1] + b"\x83"),
        asked(b""),
        asked(prompt="Describe"),
        asked(model="small"),
        asked(family="qwen3_vl"),
        asked(settings={**LIMITS, "max_new_tokens": 319}),
        asked(settings={**LIMITS, "repetition_penalty": 1.1}),
        asked(settings={"max_new_tokens": 320}),
        asked(settings={}),
    ]
    assert len(set(subjects)) == len(subjects)
    assert {len(subject) for subject in subjects} == {24}


@pytest.mark.parametrize("settings", [{}, {"max_new_tokens": {"b": [1, None], "a": "猫"}}])
def test_a_file_that_was_opened_again_is_the_same_subject(settings):
    trace = small_trace(meta=small_meta(settings=settings))
    assert subject_of(read_trace(trace_bytes(trace))) == subject_of(trace)


def test_a_new_run_of_an_example_is_held_against_what_ships():
    """Picture, prompt and length as the form has them at first."""
    store = RunStore()
    try:
        add_examples(store)
        shipped = {run.policy: run for run in store.list("")}
        assert shipped["rcr"].truth()["total"] == 10
        workbench = Workbench(Models(placement=Placement("cpu")), store)
        workbench.load()
        image = open_image(EXAMPLES_FOLDER / "5-ten-objects.png")
        run = workbench.start(ANNA, Question(image, workbench.prompt), CaptionRequest("bacon"))
        reached(run, 1).stop()
        ended(run)
        assert reference_of(store, run) is shipped["full"]
        assert reference_of(store, shipped["rcr"]) is shipped["full"]
        opened = store.add(ANNA, read_trace(trace_bytes(shipped["bacon"].trace())), label="again")
        assert summary(opened, ANNA, reference_of(store, opened))["fidelity"] is not None
    finally:
        store.close()
