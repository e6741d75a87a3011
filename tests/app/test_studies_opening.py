"""A row of a study opens as a pair of runs, at the step where the two texts part."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rcr_core.errors import SettingsError, StoreFullError, StudyError
from rcr_core.serving.studies import Studies
from rcr_core.settings import Settings
from tests.app.study_samples import published
from tests.app.web_samples import OTHER, OWNER, wait_until
from tests.viz.study_samples import made_row

pytestmark = pytest.mark.usefixtures("settled")


def first_difference(one: list[int], other: list[int]) -> int:
    return next(step for step, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)


def test_a_row_opens_as_its_run_beside_the_uncompressed_one_at_the_first_difference(finished, workbench):
    studies, study = finished
    rows = {(row.sample, row.policy): row for row in study.rows}
    row, reference = rows["scene 0", "bacon"], rows["scene 0", "full"]
    opened = studies.open(study, row.key, OWNER)
    a, b = (workbench.store.get(opened[part], OWNER) for part in "ab")
    wait_until(lambda: a.finished and b.finished, 60)
    assert (a.policy, b.policy, a.label) == ("bacon", "full", "scene 0")
    assert a.trace().tokens.tolist() == row.tokens and b.trace().tokens.tolist() == reference.tokens
    assert opened["step"] == first_difference(row.tokens, reference.tokens) > 0
    assert a.trace().meta.settings.items() >= row.settings.items()
    assert a.truth()["total"] == row.objects  # the scene is known, so its words are graded


def test_a_row_that_was_opened_before_is_found_again_and_another_shares_the_uncompressed_run(finished):
    studies, study = finished
    rows = {(row.sample, row.policy): row for row in study.rows}
    first = studies.open(study, rows["scene 1", "bacon"].key, OWNER)
    assert studies.open(study, rows["scene 1", "bacon"].key, OWNER) == first
    other = studies.open(study, rows["scene 1", "rcr"].key, OWNER)
    assert other["b"] == first["b"] and other["a"] != first["a"]
    alone = studies.open(study, rows["scene 1", "full"].key, OWNER)
    assert alone["b"] is None and alone["step"] is None


def test_a_run_that_was_dropped_or_stopped_is_decoded_anew(finished, workbench):
    studies, study = finished
    key = study.rows[1].key
    first = studies.open(study, key, OWNER)
    workbench.store.drop(first["a"], OWNER)
    again = studies.open(study, key, OWNER)
    assert again["a"] != first["a"] and again["b"] == first["b"]


def test_each_person_gets_runs_of_their_own_of_a_study_for_everyone(workbench, tmp_path, finished):
    studies = Studies(workbench)
    study = studies.publish(published(tmp_path, finished[1].rows))
    mine, others = (studies.open(study, study.rows[1].key, owner) for owner in (OWNER, OTHER))
    assert mine["a"] != others["a"] and mine["step"] == others["step"]
    assert workbench.store.get(others["a"], OTHER).owner == OTHER


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "a-large-model"}, "this row was decoded by a-large-model in float32, this server has"),
        ({"dtype": "bfloat16"}, "in bfloat16"),
        ({"weights": "0" * 16}, "this row was decoded by other weights of bundled-captioner"),
        ({"data": "holidays"}, "the picture of this row is not on this server: scene 0 of holidays"),
        ({"sample": "scene x"}, "the picture of this row is not on this server"),
        ({"sample": "scene 100000"}, "the picture of this row is not on this server"),
        ({"prompt": "What is it?"}, "this release asks another question about this scene"),
        ({"policy": "magic"}, "unknown policy"),
    ],
)
def test_a_row_that_cannot_be_decoded_here_says_why(workbench, tmp_path, finished, changes, words):
    studies = Studies(workbench)
    row = replace(finished[1].rows[1], **changes)
    study = studies.publish(published(tmp_path, [row]))
    with pytest.raises((StudyError, SettingsError), match=words):
        studies.open(study, row.key, OWNER)


def test_a_row_of_another_study_is_none_of_this_one(finished):
    studies, study = finished
    with pytest.raises(StudyError, match="there is no such row"):
        studies.open(study, made_row("rcr", Settings(), 0).key, OWNER)


def test_where_the_store_is_full_nothing_is_started(workbench, finished):
    studies, study = finished
    limits, workbench.store.limits = workbench.store.limits, replace(workbench.store.limits, per_owner=1)
    before = len(workbench.store.list(OTHER))
    try:
        with pytest.raises(StoreFullError):
            studies.open(study, study.rows[1].key, OTHER)
    finally:
        workbench.store.limits = limits
    assert len(workbench.store.list(OTHER)) == before
