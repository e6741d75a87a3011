"""The public sets, from small files in their layouts: on this machine, and through the package `datasets`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import datasets
import pytest

from rcr_core.errors import StudyError
from rcr_core.study.data import open_data
from rcr_core.study.data.public import PUBLIC
from tests.core.study_data_samples import DETAILCAPS, TEXTCAPS, TEXTVQA, png, write_hub_file, write_parquet

LAYOUTS = {"textcaps": TEXTCAPS, "detailcaps": DETAILCAPS, "textvqa": TEXTVQA}
FILES = {
    "textcaps": "val-00000-of-00001.parquet",
    "detailcaps": "test-00000-of-00001.parquet",
    "textvqa": "validation-00000-of-00001.parquet",
}


def refused(spec) -> StudyError:
    with pytest.raises(StudyError) as caught:
        open_data(spec)
    return caught.value


@pytest.fixture(params=["on this machine", "through the package"])
def opened(request, tmp_path, monkeypatch):
    """`opened(name)`: a public set from a small copy of its repository."""

    def from_copy(name, **options):
        write_hub_file(tmp_path / name / "data" / FILES[name], LAYOUTS[name])
        write_parquet(tmp_path / name / "data" / "train-00000-of-00001.parquet", {"other": [1, 2, 3]})
        if request.param == "on this machine":
            return open_data(f"{name}@{tmp_path / name}", **options)
        # `load_dataset` takes a folder for a repository, and goes the same way from there.
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
        monkeypatch.setitem(PUBLIC, name, replace(PUBLIC[name], repository=str(tmp_path / name)))
        return open_data(name, **options)

    return from_copy


def test_textcaps(opened):
    data = opened("textcaps")
    assert data.name == "textcaps"
    assert [sample.id for sample in data.samples] == ["0a", "0b", "0c"]
    last = data.samples[2]
    assert last.prompt == "Provide a one-sentence caption for the provided image."
    assert (last.max_new_tokens, last.answers) == (64, ())
    assert last.references == ("A cup.", "A mug.", "A cup of tea.")
    assert [sample.read() for sample in data.samples] == [png(1), png(2), png(3)]
    assert [sample.id for sample in opened("textcaps", limit=2).samples] == ["0a", "0b"]


def test_detailcaps(opened):
    data = opened("detailcaps")
    assert data.name == "detailcaps"
    assert [sample.id for sample in data.samples] == ["coco/1.jpg", "sam/2.jpg"]
    first, second = data.samples
    assert (first.prompt, first.max_new_tokens) == ("Describe this image in detail.", 512)
    assert first.references == ("o one", "v one", "g one")
    assert second.references == ("o two", "g two")
    assert [first.read(), second.read()] == [png(4), png(5)]


def test_textvqa(opened):
    data = opened("textvqa")
    assert data.name == "textvqa"
    first, second = data.samples
    assert [first.id, second.id] == ["34602", "34603"]
    ending = "\nAnswer the question using a single word or phrase."
    assert first.prompt == "What is the brand of this camera?" + ending
    assert second.prompt == "What does the sign of nasa say?" + ending
    assert (first.max_new_tokens, first.references) == (16, ())
    assert first.answers == ("dakota",) * 7 + ("clos culombu", "dakota digital", "nous")
    assert first.read() == png(6)


def test_a_name_is_a_name_in_any_case(tmp_path):
    write_parquet(tmp_path / FILES["textcaps"], TEXTCAPS)
    assert open_data(f"TextCaps@{tmp_path}").name == "textcaps"


def test_shards_are_taken_in_order_and_those_of_other_splits_left(tmp_path):
    for number in (2, 0, 1):
        part = {column: values[number : number + 1] for column, values in TEXTCAPS.items()}
        write_parquet(tmp_path / f"val-0000{number}-of-00003.parquet", part)
    write_parquet(tmp_path / "test-00000-of-00001.parquet", {"other": [1]})
    data = open_data(f"textcaps@{tmp_path}")
    assert [sample.id for sample in data.samples] == ["0a", "0b", "0c"]
    assert [sample.read() for sample in reversed(data.samples)] == [png(3), png(2), png(1)]


def test_files_that_name_no_split_are_all_taken_and_ids_made_unique(tmp_path):
    write_parquet(tmp_path / "a.parquet", TEXTCAPS)
    write_parquet(tmp_path / "b.parquet", TEXTCAPS)
    ids = [sample.id for sample in open_data(f"textcaps@{tmp_path}").samples]
    assert ids == ["0a", "0b", "0c", "0a (2)", "0b (2)", "0c (2)"]


def test_what_is_wrong_with_a_folder_is_told(tmp_path):
    assert "there is no folder" in refused(f"textcaps@{tmp_path / 'gone'}").message
    assert "there is no folder ''" in refused("textcaps@").message
    assert "no parquet files" in refused(f"textcaps@{tmp_path}").message
    write_parquet(tmp_path / "a.parquet", TEXTVQA)
    write_parquet(tmp_path / "b.parquet", TEXTCAPS)
    error = refused(f"textcaps@{tmp_path}")  # a column counts where every file has it
    assert error.message == "textcaps has no column caption_str"
    assert error.hint == "its columns are image_id, image"


def test_a_missing_column_is_told_with_those_that_are_there(opened, monkeypatch):
    monkeypatch.setitem(LAYOUTS, "textcaps", {"image": TEXTCAPS["image"], "caption": ["a", "b", "c"]})
    with pytest.raises(StudyError) as caught:
        opened("textcaps")
    assert caught.value.message == "textcaps has no column image_id"
    assert caught.value.hint == "its columns are image, caption"


# The tests run with HF_HUB_OFFLINE, so this is what a machine without a network answers, only sooner.
@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_without_the_hub_the_folder_is_offered(name, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    error = refused(name)
    assert error.message.startswith(f"{name} cannot be had from the hub: ")
    assert PUBLIC[name].repository in error.message
    assert f"{name}@DIR" in error.hint


def test_without_the_package_the_folder_is_offered(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # as if it were not installed
    error = refused("textvqa")
    assert error.message == "textvqa needs the package datasets"
    assert "pip install datasets" in error.hint
    assert "textvqa@DIR" in error.hint


def test_files_on_this_machine_are_read_without_any_request(tmp_path):
    write_hub_file(tmp_path / "copy" / "data" / FILES["textcaps"], TEXTCAPS)
    code = f"""
import json, socket, sys
asked = []
watched = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname")
sys.addaudithook(lambda event, args: asked.append(event) if event in watched else None)
from dataclasses import replace
from rcr_core.study.data import open_data
from rcr_core.study.data.public import PUBLIC
folder = {str(tmp_path / "copy")!r}
PUBLIC["textcaps"] = replace(PUBLIC["textcaps"], repository=folder)
sets = [open_data("textcaps"), open_data("textcaps@" + folder)]
read = [len(sample.read()) for data in sets for sample in data.samples]
quiet = list(asked)
socket.getaddrinfo("127.0.0.1", 1)
print(json.dumps([read, quiet, asked]))
"""
    settings = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True, check=True
    )
    read, quiet, asked = json.loads(done.stdout.splitlines()[-1])
    sizes = [len(png(1)), len(png(2)), len(png(3))]
    assert (read, quiet, asked) == (sizes * 2, [], ["socket.getaddrinfo"])
