"""A server's models: one at a time, loaded in the background, let go of when another is chosen."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from pathlib import Path

import pytest
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.bundled.scenes import CAPTION_PROMPT
from rcr_core.captioning import CaptionRequest
from rcr_core.errors import BusyError, LoadError
from rcr_core.models import Placement
from rcr_core.models import load_model as load_for_real
from rcr_core.serving import Form, Models, Question, Scripts, Workbench
from rcr_core.serving.options import parser, studies_of
from rcr_core.serving.presets import BUNDLED, PAPER
from rcr_core.serving.workbench import PROMPT
from rcr_core.settings import Settings
from tests.app.model_folders import three_models
from tests.app.web_samples import OWNER, wait_until
from tests.core.tiny import build_tiny
from viz.model_state import model_state


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two small models and a broken one."""
    return three_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def bench(folders):
    bench = Workbench(Models(folders, Placement("cpu")))
    bench.load()
    bench.captioner(60)
    yield bench
    bench.close()


def question() -> Question:
    return Question(Image.new("RGB", (64, 64), "red"), "What is it?")


def test_the_first_is_loaded_and_another_can_be_chosen(bench, folders):
    assert bench.server()["model"] == "qwen2_vl"
    assert bench.server()["models"] == ["qwen2_vl", "llava_next", "broken"]
    assert str(folders[0]) not in str(bench.server())  # paths are nobody's business
    bench.choose("llava_next")
    assert bench.captioner(60).loaded.family == "llava_next"
    run = bench.start(OWNER, question(), CaptionRequest("bacon", Settings(select=8), max_new_tokens=3))
    wait_until(lambda: run.finished)
    assert run.trace().meta.model == "llava_next"


def test_the_old_model_is_freed_also_after_runs_on_it(bench):
    run = bench.start(OWNER, question(), CaptionRequest("rcr", Settings(select=8), max_new_tokens=3))
    wait_until(lambda: run.finished and not bench.store.metrics()["working"])
    old = weakref.ref(bench.captioner().loaded.model)
    bench.choose("llava_next")
    bench.captioner(60)
    gc.collect()
    assert old() is None
    assert run.trace().steps == 3  # what was recorded stays


def test_a_model_in_use_is_not_taken_away(bench):
    run = bench.start(OWNER, question(), CaptionRequest("full", max_new_tokens=2000))
    wait_until(lambda: run.steps > 1)
    with pytest.raises(BusyError, match="qwen2_vl is in use: a run is not over"):
        bench.choose("llava_next")
    run.stop()
    wait_until(lambda: not bench.store.metrics()["working"])
    with bench.models.held(), pytest.raises(BusyError, match="a study goes on"):
        bench.choose("llava_next")
    bench.choose("llava_next")
    assert bench.captioner(60).loaded.family == "llava_next"


def test_one_that_cannot_be_loaded_leaves_the_way_back(bench):
    bench.choose("broken")
    with pytest.raises(LoadError):
        bench.captioner(60)
    told = bench.server()
    assert told["state"] == "failed" and "broken" in told["error"] and told["hint"]
    bench.choose("qwen2_vl")
    assert bench.captioner(60).loaded.name == "qwen2_vl"
    with pytest.raises(BusyError, match="no model elsewhere"):
        bench.choose("elsewhere")


def test_choosing_the_present_model_loads_nothing_and_a_failed_one_again(bench):
    before = bench.captioner()
    bench.choose("qwen2_vl")
    assert bench.captioner(0) is before
    bench.choose("broken")
    with pytest.raises(LoadError) as first:
        bench.captioner(60)
    bench.choose("broken")
    with pytest.raises(LoadError) as second:
        bench.captioner(60)
    assert first.value is not second.value


def test_the_last_choice_counts_and_one_is_loaded_at_a_time(bench, folders, monkeypatch):
    """A load is held back; another choice meanwhile waits for its end, and the first is never shown."""
    go, loading = threading.Event(), []

    def slow(source, **about):
        loading.append(source)
        assert go.wait(30)
        return load_for_real(source, **about)

    monkeypatch.setattr("rcr_core.serving.models.load_model", slow)
    bench.choose("llava_next")
    wait_until(lambda: loading == [folders[1]])
    told = bench.server()
    assert (told["state"], told["model"]) == ("loading", "llava_next")
    assert told["progress"]["stage"] == "configuration" and told["seconds"] >= 0
    bench.choose("qwen2_vl")
    time.sleep(0.1)
    assert loading == [folders[1]]
    go.set()
    assert bench.captioner(60).loaded.name == "qwen2_vl"
    assert loading == [folders[1], folders[0]]


def test_what_was_loaded_of_a_model_that_failed_is_freed(bench, folders, monkeypatch):
    """A tensor is missing, which shows when all others are there. The page still tells of the failure."""
    weights = Path(folders[2]) / "model.safetensors"
    before = weights.read_bytes()
    tensors = load_file(Path(folders[0]) / "model.safetensors")
    tensors.popitem()
    save_file(tensors, weights, metadata={"format": "pt"})
    models: list[weakref.ref] = []

    def watched(*about, **more):
        model, info = from_pretrained(*about, **more)
        models.append(weakref.ref(model))
        return model, info

    from_pretrained = AutoModelForImageTextToText.from_pretrained
    monkeypatch.setattr(AutoModelForImageTextToText, "from_pretrained", watched)
    bench.choose("broken")
    wait_until(lambda: bench.server()["state"] == "failed")
    weights.write_bytes(before)
    assert "lacks the weights" in bench.server()["error"]
    gc.collect()
    assert [model() for model in models] == [None]


def test_names_tell_models_apart_and_do_not_tell_where_they_are(tmp_path):
    sources = [str(tmp_path / "one" / "last"), str(tmp_path / "two" / "last"), "owner/other"]
    models = Models([*sources, f"{tmp_path}/two/../two/last"])
    assert models.names == ("one/last", "two/last", "other") and len(models.sources) == 3
    assert models.source("one/last") == sources[0]
    assert Models([str(tmp_path / "last"), "last"]).names == (f"{tmp_path.name}/last", "last")


def test_runs_of_two_models_of_one_name_are_told_apart(tmp_path):
    folders = [build_tiny("qwen2_vl", tmp_path / name / "last", seed=at) for at, name in enumerate("ab")]
    bench = Workbench(Models([str(folder) for folder in folders], Placement("cpu")))
    bench.load()
    for name in ("a/last", "b/last"):
        bench.choose(name)
        run = bench.start(OWNER, question(), CaptionRequest("full", max_new_tokens=2))
        wait_until(lambda run=run: run.finished and not bench.store.metrics()["working"])
        assert run.trace().meta.model == name
    one, other = bench.store.list(OWNER)
    assert one.subject != other.subject
    bench.close()


def test_what_a_person_wrote_stays_when_the_model_changes():
    form = Form(Workbench(Models([str(MODEL_FOLDER), "owner/other"])))
    prompt, preset, *main = form.first_values("bundled-captioner", "", PAPER, *form.preset_values(PAPER))
    assert (prompt, preset, main) == (CAPTION_PROMPT, BUNDLED, form.preset_values(BUNDLED))
    prompt, preset, *main = form.first_values("other", prompt, preset, *main)
    assert (prompt, preset, main) == (PROMPT, PAPER, form.preset_values(PAPER))
    own = ["What is written on the sign?", PAPER, 16, *main[1:]]
    assert form.first_values("bundled-captioner", *own) == own


def test_what_is_being_loaded_is_broken_off(bench, monkeypatch):
    """By another choice, and by closing. Loading is held up at the first tensor, most are still to come."""
    at_tensors, go, heard = threading.Event(), threading.Event(), []
    hear = Models._hear

    def held_up(models, future, progress):
        hear(models, future, progress)
        heard.append(progress)
        if progress.total and not go.is_set():
            at_tensors.set()
            assert go.wait(30)

    monkeypatch.setattr(Models, "_hear", held_up)
    bench.choose("llava_next")
    assert at_tensors.wait(30)
    told = len(heard)
    bench.choose("qwen2_vl")
    go.set()
    assert bench.captioner(60).loaded.name == "qwen2_vl"
    assert heard[told].stage == "configuration"  # no tensor of the other any more
    go.clear()
    at_tensors.clear()
    bench.choose("llava_next")
    assert at_tensors.wait(30)
    told = len(heard)
    threading.Timer(0.2, go.set).start()
    bench.models.close()
    assert len(heard) == told and not any(one.name == "rcr model" for one in threading.enumerate())
    with pytest.raises(BusyError, match="is being stopped"):
        bench.captioner(1)


def test_scripts_can_choose_too(bench):
    scripts = Scripts(Form(bench))
    assert scripts.list_models()["models"] == ["qwen2_vl", "llava_next", "broken"]
    assert scripts.choose_model("llava_next")["model"] == "llava_next"
    with pytest.raises(BusyError):
        scripts.choose_model("elsewhere")


def test_the_command_line_takes_several_models_and_where_they_go(bench):
    asked = ["--model", "a/b", "--model", "c", "--model", "a/b", "--quantize", "4bit", "--device-map", "auto"]
    models = studies_of(parser().parse_args(asked), bench.store).workbench.models
    assert models.sources == ("a/b", "c")
    assert models.placement == Placement(quantize="4bit", device_map="auto")
    (only,) = studies_of(parser().parse_args([]), bench.store).workbench.models.sources
    assert only.endswith("bundled-captioner")


def test_how_a_model_stands_is_told_in_a_line():
    only = {"model": "a<b", "models": ["a<b"]}
    loading = only | {"state": "loading", "seconds": 3.4}
    weights = {"stage": "weights", "done": 120, "total": 729}
    told = model_state(loading | {"progress": weights})
    assert "Loading a&lt;b: 120 of 729 tensors, 3 s" in told and "value='120' max='729'" in told
    download = {"stage": "download", "done": 3_240_000_000, "total": 16_590_000_000}
    assert "Loading a&lt;b: downloaded 3.2 of 16.6 GB, 3 s" in model_state(loading | {"progress": download})
    told = model_state(loading | {"progress": {"stage": "processor", "done": 0, "total": 0}})
    assert "reading its processor" in told and "<progress aria" in told
    told = model_state(only | {"state": "failed", "error": "no <weights>", "hint": "look again"})
    assert "No &lt;weights&gt;. Look again." in told and "alert" in told
    ready = only | {"state": "ready", "device": "cuda", "dtype": "bfloat16", "layers": 28, "kv_heads": 4}
    assert ">a&lt;b on cuda, bfloat16: 28 layers, 4 KV heads<" in model_state(ready)
    several = {"models": ["a<b", "c"]}  # the picker has the name
    assert ">On cuda, bfloat16: 28 layers, 4 KV heads<" in model_state(ready | several)
    assert ">Loading: 120 of 729 tensors, 3 s<" in model_state(loading | several | {"progress": weights})
