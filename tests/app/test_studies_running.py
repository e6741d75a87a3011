"""How a study runs: beside the runs of people, to its end or until it is stopped."""

from __future__ import annotations

import time

import pytest

from rcr_core.captioning import CaptionRequest
from rcr_core.errors import LoadError, StoreFullError
from rcr_core.models import open_image
from rcr_core.serving import Models, Question, Workbench
from rcr_core.serving.studies import Studies
from rcr_core.settings import Settings
from tests.app.study_samples import LONG, PICTURE, TINY, idle
from tests.app.web_samples import OTHER, OWNER, wait_until

PATIENCE = 240  # seconds, on a crowded machine
# Threads race with the clock of a crowded machine; the summary tells of every second try.
pytestmark = [pytest.mark.flaky(reruns=1), pytest.mark.usefixtures("settled")]


def test_its_rows_are_what_single_runs_of_the_same_images_give(finished, workbench):
    _, study = finished
    assert (study.status, study.progress.done, study.progress.failed) == ("done", 6, ())
    assert {row.sample for row in study.rows} == {"scene 0", "scene 1"}
    row = study.rows[-1]
    sample = study.samples[row.sample]
    question = Question(open_image(sample.read()), sample.prompt)
    request = CaptionRequest("rcr", Settings.from_dict(row.settings), max_new_tokens=40)
    run = workbench.start(OWNER, question, request)
    wait_until(lambda: run.finished, PATIENCE)
    assert run.trace().tokens.tolist() == row.tokens
    assert row.settings["select"] == 64 and row.settings["rho"] == 0.6  # the preset of the small model


def test_a_study_goes_on_beside_a_run_and_neither_waits_for_the_other_to_end(studies, workbench):
    study = studies.start(OWNER, LONG)
    wait_until(lambda: study.progress.done >= 1, PATIENCE)
    before = study.progress.done
    question = Question(open_image(PICTURE), workbench.prompt)
    run = workbench.start(OTHER, question, CaptionRequest("rcr", Settings()))
    wait_until(lambda: run.steps >= 20, PATIENCE)
    assert study.status == "running"
    run.stop()
    wait_until(lambda: study.progress.done > before, PATIENCE)


def test_stop_ends_it_within_a_second_and_keeps_the_rows(studies):
    study = studies.start(OWNER, LONG)
    wait_until(lambda: study.progress.done >= 1, PATIENCE)
    began = time.monotonic()
    study.stop()
    assert study.over.wait(1.0)
    assert time.monotonic() - began < 1.0
    assert study.status == "stopped" and len(study.rows) == study.progress.done >= 1
    assert study.summary(OWNER)["left"] is None


def test_it_says_how_long_the_rest_will_take(studies):
    study = studies.start(OWNER, LONG)
    assert study.summary(OWNER)["left"] is None
    began = time.monotonic()
    wait_until(lambda: study.progress.done >= 2, PATIENCE)
    told = study.summary(OWNER)
    took = time.monotonic() - began
    assert 0 < told["left"] <= took / told["done"] * (told["total"] - told["done"]) * 1.05


def test_a_study_that_waits_for_the_model_can_be_stopped():
    studies = idle()
    study = studies.start(OWNER, TINY)
    assert study.status == "waiting"
    study.stop()
    assert study.over.wait(2)
    assert (study.status, study.rows) == ("stopped", ())


def test_without_a_model_it_fails_in_the_words_of_the_model():
    workbench = Workbench(Models(["no/such/folder"]))
    workbench.load()
    studies = Studies(workbench)
    study = studies.start(OWNER, TINY)
    assert study.over.wait(PATIENCE)
    assert study.status == "failed" and isinstance(study.error, LoadError)
    assert study.summary(OWNER)["error"]["message"] == study.error.message


def test_a_picture_that_the_model_cannot_take_fails_alone(studies, workbench):
    key = studies.shelf.put(OWNER, "wide", PICTURE).key
    prompt = "word " * 3900  # longer than the model's positions
    study = studies.start(OWNER, {"data": "pictures", "pictures": [key], "prompt": prompt})
    assert study.over.wait(PATIENCE)
    told = study.summary(OWNER)
    assert (told["status"], told["done"], told["failed"]) == ("done", 0, 3)
    assert {one["policy"] for one in told["failures"]} == {"full", "bacon", "rcr"}
    assert all(one["message"] for one in told["failures"])


def test_closing_the_server_stops_it(workbench):
    studies = Studies(workbench)
    study = studies.start(OWNER, LONG)
    wait_until(lambda: study.progress.done >= 1, PATIENCE)
    studies.close()
    assert study.over.is_set() and study.status == "stopped"
    with pytest.raises(StoreFullError):
        studies.start(OWNER, TINY)
