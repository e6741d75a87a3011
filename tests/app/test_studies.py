"""The studies of a server: what may be asked, who sees what, how many are kept, and people's own pictures."""

from __future__ import annotations

import json
import threading
import time

import pytest

from rcr_core.errors import (
    ImageError,
    PromptError,
    SettingsError,
    StoreFullError,
    StudyError,
    UnknownStudyError,
)
from rcr_core.policies import POLICIES
from rcr_core.serving import Workbench
from rcr_core.serving.studies import MAX_TASKS, Snapshot, Studies, StudyLimits
from tests.app.study_samples import LONG, PICTURE, TINY, idle, published
from tests.app.web_samples import OTHER, OWNER, wait_until
from tests.viz.study_samples import made_rows

pytestmark = pytest.mark.usefixtures("settled")

# ---- what may be asked


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"data": "films"}, "data must be one of scenes, questions, pictures"),
        ({"count": 0}, "count must be a whole number in [1, 50], got 0"),
        ({"count": 51}, "count must be a whole number in [1, 50], got 51"),
        ({"count": 2.5}, "count must be a whole number"),
        ({"count": "many"}, "count must be a whole number"),
        ({"count": 10**400}, "count must be a whole number in [1, 50]"),
        ({"first": -1}, "first must be a whole number in [0, "),
        ({"first": 100_000}, "first must be a whole number in [0, "),
        ({"max_new_tokens": 513}, "max_new_tokens must be a whole number in [1, 512], got 513"),
        ({"policies": []}, "policies must name one or more"),
        ({"policies": "rcr"}, "policies must be a list of names"),
        ({"policies": ["rcr", "magic"]}, "policies names an unknown one: 'magic'"),
        ({"sweeps": ["everything"]}, "sweeps names an unknown one: 'everything'"),
        ({"settings": {"select": 0}}, "select must be a whole number in [1, 65536], got 0"),
        ({"settings": {"rho": 2}}, "rho must be a number in [0, 1], got 2"),
        ({"settings": {"update": "now"}}, "update must be one of layer, step"),
        ({"settings": {"diagnostics": True}}, "unknown setting 'diagnostics'"),
        ({"settings": [1]}, "settings must be an object"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"data": "pictures"}, "pictures must be 1 to 16 pictures, got 0"),
        ([1, 2], "a study must be an object"),
        (None, "a study must be an object"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_field_and_range(values, words):
    with pytest.raises(SettingsError) as error:
        idle().start(OWNER, values)
    assert words in error.value.message


def test_a_study_may_not_be_larger_than_the_page_takes():
    studies = idle()
    with pytest.raises(SettingsError) as error:
        studies.start(OWNER, {"count": 50, "policies": list(POLICIES), "sweeps": ["rates"]})
    # Ten policies, and RCR at eight rates, of which .6 is the preset's: 17 a scene.
    assert "50 images x 17 policies" in error.value.message and "850" in error.value.message
    assert studies.list(OWNER) == []
    whole = studies.start(OWNER, {"count": 50, "policies": list(POLICIES)})
    assert whole.progress.total == 500 <= MAX_TASKS
    studies.close()


def test_the_uncompressed_run_is_always_among_the_policies_and_comes_first(finished):
    studies = idle()
    study = studies.start(OWNER, {"count": 1, "policies": ["rcr"]})
    assert study.progress.total == 2
    studies.close()
    assert [row.policy for row in finished[1].rows] == ["full", "bacon", "rcr"] * 2


# ---- who sees what, and how many there are


def test_a_study_is_its_owners_alone_and_unknown_to_others(finished):
    studies, study = finished
    assert studies.get(study.id, OWNER) is study
    words = set()
    for act in (
        lambda: studies.get(study.id, OTHER),
        lambda: studies.get(study.id),
        lambda: studies.get("nothing", OTHER),
        lambda: studies.own(study.id, OTHER),
        lambda: studies.drop(study.id, OTHER),
    ):
        with pytest.raises(UnknownStudyError) as error:
            act()
        words.add(str(error.value))
    assert len(words) == 1
    assert studies.list(OTHER) == [] and studies.list(OWNER) == [study]
    assert study.summary(OTHER)["mine"] is False


def test_one_study_runs_at_a_time_whoever_asks():
    studies = idle()
    study = studies.start(OWNER, TINY)
    with pytest.raises(StoreFullError, match="one of your studies is running"):
        studies.start(OWNER, TINY)
    with pytest.raises(StoreFullError, match="another person's study is running"):
        studies.start(OTHER, TINY)
    study.stop()
    study.over.wait(2)
    studies.start(OTHER, TINY)
    studies.close()


def stopped(studies: Studies, owner: str):
    study = studies.start(owner, TINY)
    study.stop()
    assert study.over.wait(2)
    return study


def test_the_studies_used_least_lately_go_when_there_are_too_many():
    now = [0.0]
    studies = Studies(Workbench(), StudyLimits(per_owner=2, kept=3), clock=lambda: now[0])
    first, second = (stopped(studies, OWNER) for _ in range(2))
    now[0] = 1.0
    studies.get(first.id, OWNER)
    third = stopped(studies, OWNER)
    assert studies.list(OWNER) == [third, first] and second not in studies.list(OWNER)
    now[0] = 2.0
    others = [stopped(studies, OTHER) for _ in range(2)]
    assert studies.list(OTHER) == others[::-1]
    assert len(studies.list(OWNER)) == 1  # three in all


def test_a_study_that_nobody_asks_for_goes_after_its_time():
    now = [0.0]
    studies = Studies(Workbench(), StudyLimits(ttl=100.0), clock=lambda: now[0])
    study = stopped(studies, OWNER)
    now[0] = 99.0
    assert studies.get(study.id, OWNER) is study
    now[0] = 198.0
    assert studies.list(OWNER) == [study]
    now[0] = 200.0
    assert studies.list(OWNER) == []


def test_a_study_that_is_dropped_is_stopped(studies):
    study = studies.start(OWNER, LONG)
    studies.drop(study.id, OWNER)
    assert study.over.wait(5)
    with pytest.raises(UnknownStudyError):
        studies.get(study.id, OWNER)


# ---- studies for everyone


def test_the_shipped_study_comes_first_and_then_those_that_were_given(tmp_path):
    rows = made_rows(3, sweeps=False, data="scenes")
    shipped = published(tmp_path, rows, "shipped")
    given = published(tmp_path, rows[:4], "mine")
    studies = Studies(Workbench(), shipped=shipped)
    studies.publish(given.parent)
    listed = studies.list(OTHER)
    assert [study.label for study in listed] == ["3 scenes, 10 policies", "mine: 3 scenes, 2 policies"]
    assert [study.id for study in listed] == ["shipped", "study-1"]
    assert list(listed[0].rows) == rows
    with pytest.raises(UnknownStudyError):
        studies.drop("shipped", OWNER)


def test_without_a_shipped_study_there_is_none(tmp_path):
    assert Studies(Workbench(), shipped=tmp_path / "results.jsonl.gz").list(OWNER) == []


def test_a_shipped_study_that_is_damaged_is_left_out(tmp_path):
    (tmp_path / "results.jsonl").write_text("no JSON\n")
    assert Studies(Workbench(), shipped=tmp_path / "results.jsonl").list(OWNER) == []


@pytest.mark.parametrize("text", [None, "", "no JSON\n"])
def test_a_study_that_is_to_be_shown_and_is_none_is_an_error(tmp_path, text):
    path = tmp_path / "results.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(StudyError):
        idle().publish(path)


# ---- pictures of one's own


def test_a_picture_of_ones_own_is_studied_and_its_row_opens(studies, workbench):
    picture = studies.shelf.put(OWNER, "mine.png", PICTURE)
    asked = {"data": "pictures", "pictures": [picture.key], "prompt": workbench.prompt, "max_new_tokens": 12}
    study = studies.start(OWNER, asked)
    assert study.over.wait(60)
    assert {(row.data, row.sample, row.prompt) for row in study.rows} == {
        ("pictures", "mine.png", workbench.prompt)
    }
    opened = studies.open(study, study.rows[-1].key, OWNER)
    run = workbench.store.get(opened["a"], OWNER)
    wait_until(lambda: run.finished, 60)
    assert run.trace().tokens.tolist() == study.rows[-1].tokens
    with pytest.raises(StudyError, match="no longer on the server"):
        studies.start(OWNER, asked)  # it went with the first study


def test_pictures_are_their_owners_alone_and_of_one_name_twice():
    studies = idle()
    keys = [studies.shelf.put(OWNER, "same", PICTURE).key for _ in range(2)]
    with pytest.raises(StudyError, match="no longer on the server"):
        studies.start(OTHER, {"data": "pictures", "pictures": keys})
    study = studies.start(OWNER, {"data": "pictures", "pictures": keys})
    assert list(study.samples) == ["same", "same (2)"]
    studies.close()


def test_what_is_no_picture_or_too_much_is_refused():
    shelf = Studies(Workbench(), StudyLimits(picture_bytes=2 * len(PICTURE))).shelf
    with pytest.raises(ImageError, match="not a picture"):
        shelf.put(OWNER, "text", b"words")
    shelf.put(OWNER, "one", PICTURE)
    shelf.put(OWNER, "two", PICTURE)
    with pytest.raises(StoreFullError, match="a study takes 16 pictures"):
        shelf.put(OWNER, "three", PICTURE)
    shelf.put(OTHER, "one", PICTURE)


def test_the_server_holds_so_many_pictures_those_of_studies_included():
    studies = Studies(Workbench(), StudyLimits(all_picture_bytes=2 * len(PICTURE)))
    key = studies.shelf.put(OWNER, "one", PICTURE).key
    studies.start(OWNER, {"data": "pictures", "pictures": [key]})
    studies.shelf.put(OTHER, "two", PICTURE)
    with pytest.raises(StoreFullError, match="as many pictures as it can"):
        studies.shelf.put(OTHER, "three", PICTURE)
    studies.close()


def test_a_picture_waits_for_its_study_so_long():
    now = [0.0]
    studies = Studies(Workbench(), StudyLimits(picture_ttl=10.0), clock=lambda: now[0])
    key = studies.shelf.put(OWNER, "one", PICTURE).key
    now[0] = 11.0
    with pytest.raises(StudyError, match="no longer on the server"):
        studies.start(OWNER, {"data": "pictures", "pictures": [key]})


def test_a_prompt_must_be_there():
    studies = idle()
    key = studies.shelf.put(OWNER, "one", PICTURE).key
    for prompt in ("  ", 7, "x" * 20_001):
        with pytest.raises(PromptError):
            studies.start(OWNER, {"data": "pictures", "pictures": [key], "prompt": prompt})


# ---- what is computed from rows


def test_a_snapshot_computes_once_whoever_asks_meanwhile():
    snapshot, made = Snapshot(made_rows(1, sweeps=False)), []

    def make():
        time.sleep(0.05)
        made.append(1)
        return len(snapshot.rows)

    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(snapshot.remember("rows", make))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [10] * 8 and len(made) == 1


def test_a_study_gives_the_same_snapshot_until_a_row_comes(finished):
    study = finished[1]
    assert study.snapshot() is study.snapshot()
    assert len({json.dumps(row.settings) for row in study.rows}) == 2  # diagnostics of the reference
