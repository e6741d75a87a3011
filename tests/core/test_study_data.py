"""The data of a study: scenes, folders, tables, and what goes wrong with them."""

from __future__ import annotations

import os
import pickle
import sys

import numpy as np
import pyarrow as pa
import pytest

from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.errors import StudyError
from rcr_core.models import open_image
from rcr_core.study.data import open_data
from tests.core.study_data_samples import png, stored, write_lines, write_parquet


def refused(spec, **options) -> StudyError:
    with pytest.raises(StudyError) as caught:
        open_data(str(spec), **options)
    return caught.value


def unread(sample) -> StudyError:
    with pytest.raises(StudyError) as caught:
        sample.read()
    return caught.value


@pytest.fixture
def folder(tmp_path):
    """Three pictures, and things beside them that are none."""
    own = tmp_path / "shop windows"
    (own / "more.png").mkdir(parents=True)
    (own / "more.png" / "d.png").write_bytes(png(4))
    for name, shade in (("b.PNG", 2), ("a.jpeg", 1), ("c.webp", 3), (".hidden.png", 5)):
        (own / name).write_bytes(png(shade))
    (own / "notes.txt").write_text("not a picture")
    return own


# Scenes


def test_scenes_are_those_of_the_held_out_seeds():
    data = open_data("Scenes:3")
    assert data.name == "scenes"
    assert [sample.id for sample in data.samples] == ["scene 0", "scene 1", "scene 2"]
    last = data.samples[2]
    assert (last.prompt, last.max_new_tokens, last.answers) == (CAPTION_PROMPT, 320, ())
    assert last.references == (make_scene(2).caption,)
    assert make_scene(**last.scene) == make_scene(2)
    assert np.array_equal(np.asarray(open_image(last.read())), make_scene(2).pixels())


def test_questions_ask_about_the_scene_of_their_picture():
    data = open_data("questions:40")
    assert data.name == "questions"
    for seed, sample in enumerate(data.samples):
        asked = {question.text: question.answer for question in make_scene(seed).questions()}
        assert sample.answers == (asked[sample.prompt],)
        assert sample.max_new_tokens == 8
    assert len({sample.prompt for sample in data.samples}) > 20
    assert np.array_equal(np.asarray(open_image(data.samples[7].read())), make_scene(7).pixels())


@pytest.mark.parametrize("count", ["0", "100001", "-1", "1.5", "", "many", "٣", "9" * 5000])
def test_a_count_of_scenes_is_a_whole_number_in_its_range(count):
    error = refused(f"SCENES:{count}")
    assert "[1, 100000]" in error.message
    assert error.hint == "write SCENES:200"
    assert len(error.message) < 120


# What is chosen of a set


def test_a_limit_takes_the_first_and_with_a_seed_a_sample_in_the_order_of_the_set():
    ids = [sample.id for sample in open_data("SCENES:60").samples]
    assert [sample.id for sample in open_data("SCENES:60", limit=5).samples] == ids[:5]
    drawn = [sample.id for sample in open_data("SCENES:60", limit=20, seed=3).samples]
    assert drawn == [own for own in ids if own in set(drawn)]
    assert len(drawn) == 20
    assert drawn != ids[:20]
    assert drawn == [sample.id for sample in open_data("SCENES:60", limit=20, seed=3).samples]
    assert drawn != [sample.id for sample in open_data("SCENES:60", limit=20, seed=4).samples]
    for limit in (60, 61):
        assert [sample.id for sample in open_data("SCENES:60", limit=limit, seed=3).samples] == ids


def test_every_sample_is_drawn_equally_often():
    drawn = [sample.id for seed in range(150) for sample in open_data("SCENES:4", limit=2, seed=seed).samples]
    counts = [drawn.count(f"scene {seed}") for seed in range(4)]
    assert sum(counts) == 300
    assert all(55 <= count <= 95 for count in counts)  # 75 expected, with a deviation of 6


def test_prompt_and_length_can_be_set_for_all():
    data = open_data("SCENES:2", prompt="What is this?", max_new_tokens=7)
    assert [(sample.prompt, sample.max_new_tokens) for sample in data.samples] == [("What is this?", 7)] * 2
    assert data.samples[1].scene == open_data("SCENES:2").samples[1].scene


@pytest.mark.parametrize("option", [{"limit": 0}, {"limit": -3}, {"seed": -1}, {"max_new_tokens": 0}])
def test_numbers_out_of_range_are_refused(option):
    assert "must be at least" in refused("SCENES:2", **option).message


@pytest.mark.parametrize("spec", ["nothing", "nothing@here", "gone/captions.jsonl", "x" * 5000, "", "a\0b"])
def test_unknown_data_are_told_with_what_there_is(spec):
    error = refused(spec)
    assert "no such file, folder or set" in error.message
    for known in ("SCENES:N", "QUESTIONS:N", ".jsonl", ".parquet", "textcaps", "detailcaps", "textvqa"):
        assert known in error.hint


def test_a_file_of_another_kind_is_refused(folder):
    assert "notes.txt is not a kind of file" in refused(folder / "notes.txt").message


# Folders


def test_a_folder_gives_its_pictures_by_name(folder):
    data = open_data(str(folder))
    assert data.name == "shop windows"
    assert [sample.id.split()[0] for sample in data.samples] == ["a.jpeg", "b.PNG", "c.webp"]
    assert [sample.read() for sample in data.samples] == [png(1), png(2), png(3)]
    first = data.samples[0]
    assert (first.prompt, first.max_new_tokens) == ("Describe this image in detail.", 512)
    assert [sample.id for sample in open_data(str(folder), limit=1).samples] == [first.id]


def test_a_changed_file_is_another_sample(tmp_path):
    (tmp_path / "a.png").write_bytes(b"abc")
    # The published SHA-256 of "abc" is ba7816bf 8f01cfea ...
    assert open_data(str(tmp_path)).samples[0].id == "a.png ba7816bf"
    (tmp_path / "a.png").write_bytes(b"abd")
    assert open_data(str(tmp_path)).samples[0].id != "a.png ba7816bf"


def test_a_folder_without_images_is_refused(folder):
    (folder / "empty").mkdir()
    error = refused(folder / "empty")
    assert "no images" in error.message
    assert ".webp" in error.hint


def test_a_picture_that_went_away_is_told_when_it_is_read(folder):
    sample = open_data(str(folder)).samples[1]
    (folder / "b.PNG").unlink()
    assert sample.id in unread(sample).message
    assert "is missing" in unread(sample).message


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no file names that are not UTF-8")
def test_a_name_that_is_not_utf_8_becomes_text(tmp_path):
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9.png"), "wb") as file:
        file.write(png())
    sample = open_data(str(tmp_path)).samples[0]
    assert sample.id.encode().startswith(rb"caf\xe9.png ")
    assert sample.read() == png()


# JSON lines


def test_json_lines_give_samples(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(png(1))
    (tmp_path / "b.png").write_bytes(png(2))
    path = write_lines(
        tmp_path / "captions.jsonl",
        '\ufeff{"image": "pictures/a.png", "prompt": "What?\u2028Why?", "references": ["one", "two"]}',
        "",
        {"image": str(tmp_path / "b.png"), "references": "alone", "id": 7, "max_new_tokens": 20},
        {"image": "b.png", "prompt": "How many?", "answers": ["3", "three"], "references": None, "x": 1},
        {"image": "b.png"},
    )
    data = open_data(path)
    assert data.name == "captions"
    first, second, third, fourth = data.samples
    assert (first.id, first.prompt, first.references) == ("pictures/a.png", "What?\u2028Why?", ("one", "two"))
    assert (second.id, second.references, second.max_new_tokens) == ("7", ("alone",), 20)
    assert (third.id, third.answers, third.references) == ("b.png", ("3", "three"), ())
    assert (fourth.id, fourth.prompt) == ("b.png (2)", "Describe this image in detail.")
    assert fourth.max_new_tokens == 512
    assert [sample.read() for sample in data.samples] == [png(1), png(2), png(2), png(2)]


def test_names_that_are_given_do_not_collide_with_those_that_are_not(tmp_path):
    rows = [{"image": "a.png"}, {"image": "b.png", "id": "a.png"}, {"image": "a.png"}]
    data = open_data(write_lines(tmp_path / "t.jsonl", *rows))
    assert [sample.id for sample in data.samples] == ["a.png (2)", "a.png", "a.png (3)"]


@pytest.mark.parametrize("image", ["gone.png", "a\0b.png", ".", "x" * 5000])
def test_a_missing_picture_names_its_sample_when_it_is_read(tmp_path, image):
    (sample,) = open_data(write_lines(tmp_path / "t.jsonl", {"image": image, "id": "seven"})).samples
    assert "the picture of sample 'seven'" in unread(sample).message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 of t.jsonl is not JSON"),
        ("[" * 200_000, "line 2 of t.jsonl is not JSON"),
        ("[1]", "line 2 of t.jsonl is no JSON object"),
        ('"a.png"', "line 2 of t.jsonl is no JSON object"),
        ('{"prompt": "x"}', "line 2 of t.jsonl has no image"),
        ('{"image": null}', "line 2 of t.jsonl has no image"),
        ('{"image": 3}', "line 2 of t.jsonl: image must be a text, got 3"),
        ('{"image": ""}', "line 2 of t.jsonl: image must be a text, got ''"),
        ('{"image": "a", "prompt": ["x"]}', "line 2 of t.jsonl: prompt must be a text, got ['x']"),
        ('{"image": "a", "references": {"x": 1}}', "line 2 of t.jsonl: references must be a text"),
        ('{"image": "a", "answers": ["x", 1]}', "line 2 of t.jsonl: answers must be a text, got 1"),
        ('{"image": "a", "id": true}', "line 2 of t.jsonl: id must be a text, got True"),
        ('{"image": "a", "max_new_tokens": 0}', "max_new_tokens must be a whole number of at least 1, got 0"),
        ('{"image": "a", "max_new_tokens": true}', "max_new_tokens must be a whole number"),
        ('{"image": "a", "max_new_tokens": 1.5}', "max_new_tokens must be a whole number"),
        ('{"image": "a", "prompt": "\\ud800"}', "prompt must be a text of whole characters, got '\\ud800'"),
        ('{"image": "a", "id": "first"}', "t.jsonl gives the id 'first' in line 1 and in line 2"),
    ],
)
def test_a_line_of_the_wrong_kind_is_told_with_its_place(tmp_path, line, message):
    error = refused(write_lines(tmp_path / "t.jsonl", {"image": "a.png", "id": "first"}, line))
    assert message in error.message
    assert error.hint
    assert len(error.message) < 200


def test_a_file_that_is_not_utf_8_and_one_without_rows_are_refused(tmp_path):
    (tmp_path / "latin.jsonl").write_bytes('{"image": "café.png"}'.encode("latin-1"))
    assert "latin.jsonl is not UTF-8 (byte 14" in refused(tmp_path / "latin.jsonl").message
    assert "empty.jsonl has no rows" in refused(write_lines(tmp_path / "empty.jsonl", "", " ")).message


# A person's own parquet file


def test_a_parquet_file_gives_samples_by_path(tmp_path):
    (tmp_path / "a.png").write_bytes(png(1))
    image = pa.array(["a.png", "a.png"]).dictionary_encode()
    columns = {"image": image, "references": [["x", "y"], None], "id": [1, 2], "max_new_tokens": [9, None]}
    data = open_data(write_parquet(tmp_path / "mine.parquet", columns))
    assert data.name == "mine"
    assert [(sample.id, sample.max_new_tokens) for sample in data.samples] == [("1", 9), ("2", 512)]
    assert [sample.references for sample in data.samples] == [("x", "y"), ()]
    assert [sample.read() for sample in data.samples] == [png(1)] * 2


@pytest.mark.parametrize(
    "kind",
    [
        lambda pictures: pictures,
        lambda pictures: pa.array(pictures, pa.large_binary()),
        lambda pictures: stored(*pictures),
    ],
    ids=["bytes", "large bytes", "as on the hub"],
)
@pytest.mark.parametrize("group", [1000, 7])
def test_pictures_in_a_parquet_file_are_read_in_any_order(tmp_path, kind, group):
    pictures = [b"%d" % index * 50 for index in range(100)]
    columns = {"image": kind(pictures), "answers": [["yes", "no"]] * 100, "other": list(range(100))}
    data = open_data(write_parquet(tmp_path / "t.parquet", columns, row_group_size=group))
    assert [sample.read() for sample in data.samples] == pictures
    order = np.random.default_rng(0).permutation(100)
    assert [data.samples[index].read() for index in order] == [pictures[index] for index in order]
    assert data.samples[99].id == "row 100"
    assert data.samples[99].answers == ("yes", "no")
    few = open_data(str(tmp_path / "t.parquet"), limit=3, seed=5).samples
    assert [sample.read() for sample in few] == [pictures[int(sample.id.split()[1]) - 1] for sample in few]


def test_a_parquet_file_of_images_alone_will_do(tmp_path):
    data = open_data(write_parquet(tmp_path / "t.parquet", {"image": [png(1), png(2)]}))
    assert [sample.id for sample in data.samples] == ["row 1", "row 2"]
    assert data.samples[1].read() == png(2)


def test_an_empty_cell_names_its_sample(tmp_path):
    data = open_data(write_parquet(tmp_path / "t.parquet", {"image": [png(1), None], "id": ["a", "b"]}))
    assert data.samples[0].read() == png(1)
    assert "sample 'b' has no picture" in unread(data.samples[1]).message
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    image = pa.array([{"bytes": None, "path": "t.parquet"}], kind)  # a path in there is not followed
    data = open_data(write_parquet(tmp_path / "u.parquet", {"image": image}))
    assert "sample 'row 1' has no picture" in unread(data.samples[0]).message


def test_what_is_wrong_with_a_parquet_file_is_told(tmp_path):
    error = refused(write_parquet(tmp_path / "t.parquet", {"picture": [b"x"], "prompt": ["y"]}))
    assert (error.message, error.hint) == ("t.parquet has no column image", "its columns are picture, prompt")
    assert "image column of int64" in refused(write_parquet(tmp_path / "n.parquet", {"image": [1]})).message
    (tmp_path / "fake.parquet").write_bytes(b"PAR1 and no more")
    assert "fake.parquet cannot be read as a parquet file" in refused(tmp_path / "fake.parquet").message
    error = refused(write_parquet(tmp_path / "d.parquet", {"image": ["a", "b"], "id": ["x", "x"]}))
    assert error.message == "d.parquet gives the id 'x' in row 1 and in row 2"
    assert (
        "has no rows"
        in refused(write_parquet(tmp_path / "e.parquet", {"image": pa.array([], pa.string())})).message
    )


def test_a_damaged_picture_page_is_told_when_it_is_read(tmp_path):
    path = tmp_path / "t.parquet"
    write_parquet(path, {"image": [os.urandom(400_000)] * 3}, compression="gzip", use_dictionary=False)
    data = path.read_bytes()
    path.write_bytes(data[:1000] + b"\0" * 300_000 + data[301_000:])
    assert "t.parquet cannot be read as a parquet file" in unread(open_data(str(path)).samples[0]).message


def test_without_the_package_parquet_files_ask_for_it(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "t.parquet", {"image": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    assert refused(path).hint == "pip install pyarrow"


def test_readers_of_scenes_and_files_can_be_sent_to_another_process(folder, tmp_path):
    table = write_lines(tmp_path / "t.jsonl", {"image": str(folder / "b.PNG")})
    for spec in ("SCENES:1", "QUESTIONS:1", str(folder), table):
        sample = open_data(spec).samples[0]
        assert pickle.loads(pickle.dumps(sample)).read() == sample.read()
