"""What a person fills in becomes runs, or words: the form, its presets, and a model that may fail to load."""

from __future__ import annotations

import io
import json
import re
import time
from copy import copy

import pytest
from PIL import Image

from rcr_core.bundled.examples import EXAMPLES, EXAMPLES_FOLDER, scene_in
from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.captioning import CaptionRequest
from rcr_core.errors import ImageError, LoadError, PromptError, ScopeError, SettingsError
from rcr_core.policies import POLICIES
from rcr_core.runs import RunStore, StoreLimits
from rcr_core.serving import PRESETS, Form, Models, Question, Workbench, setting_names
from rcr_core.serving.examples import add_examples
from rcr_core.serving.options import parser, studies_of
from rcr_core.serving.presets import MAIN_SETTINGS, settings_from, whole_number
from rcr_core.settings import Settings

OWNER = "a-browsers-own-token"
PICTURE, LONG = (str(EXAMPLES_FOLDER / f"{name}.png") for name in ("1-four-objects", "8-fourteen-objects"))
LOADED = Workbench()


def wait(run, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not run.finished:
        assert time.monotonic() < until
        run.wait(run.steps + 1, 1.0)


@pytest.fixture
def make_form():
    """`make_form(model, **limits)`: a form on a model (else the bundled one) and a store of its own."""
    stores = []

    def make(model: Workbench = LOADED, **limits) -> Form:
        stores.append(RunStore(StoreLimits(**limits)))
        workbench = copy(model)
        workbench.store = stores[-1]
        return Form(workbench)

    yield make
    for store in stores:
        store.close()


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """The bundled model, loaded once."""
    LOADED.load()
    LOADED.captioner(60)


def press(form: Form, path=PICTURE, prompt=CAPTION_PROMPT, a="rcr", b="bacon", **given):
    """Press Run on a form that is otherwise as it was at first; the answer."""
    values = at_first(form) | given.pop("settings", {})
    of_b = dict.fromkeys(MAIN_SETTINGS) | given.pop("of_b", {})
    given = {
        "more": None,
        "reference": True,
        "seed": None,
        "limit": 3,
        "pixels": None,
        "owner": OWNER,
    } | given
    options = (given[name] for name in ("reference", "seed", "limit", "pixels"))
    values = (*values.values(), *of_b.values(), given["owner"])
    return json.loads(form.start(path, given["more"], prompt, a, b, *options, *values))


def at_first(form: Form) -> dict:
    """The settings of a form that was reset."""
    return dict(zip(setting_names(), form.reset()[2:], strict=False))


def test_run_starts_a_and_b_and_the_uncompressed_reference(make_form):
    form = make_form()
    answer = press(form)
    runs = {part: form.workbench.store.get(run_id, OWNER) for part, run_id in answer.items()}
    assert {part: run.policy for part, run in runs.items()} == {"a": "rcr", "b": "bacon", "reference": "full"}
    for run in runs.values():
        wait(run)
        assert (run.status, run.steps, run.label) == ("done", 3, "1-four-objects")
        assert run.trace().meta.settings == {
            **settings_from(PRESETS[form.workbench.preset]).to_dict(),
            "max_new_tokens": 3,
            "repetition_penalty": 1.0,
        }
    assert runs["a"].subject == runs["reference"].subject


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"reference": False}, ["a", "b"]),
        ({"b": ""}, ["a", "reference"]),
        ({"b": "full"}, ["a", "b"]),
        ({"a": "full", "b": ""}, ["a"]),
    ],
)
def test_a_reference_is_decoded_once_and_where_it_is_asked_for(make_form, given, parts):
    assert list(press(make_form(), limit=0, **given)) == parts


def test_b_may_have_settings_of_its_own(make_form):
    form = make_form()
    of_b = {"select": " 16", "rho": "0.1", "gain": ""}
    answer = press(form, a="rcr", b="rcr", limit=1, reference=False, of_b=of_b)
    a, b = (form.workbench.store.get(answer[part], OWNER) for part in "ab")
    for run in (a, b):
        wait(run)
    settings = a.trace().meta.settings
    assert (settings["select"], settings["rho"]) == (64, 0.6)
    assert b.trace().meta.settings == settings | {"select": 16, "rho": 0.1}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"path": None}, "there is no picture yet"),
        ({"path": __file__}, "test_serving.py is not a picture that can be read"),
        ({"prompt": " \n"}, "the prompt is empty"),
        ({"prompt": "a" * 20_001}, "the prompt has 20,001 characters, the limit is 20,000"),
        ({"settings": {"select": 0}}, "select must be a whole number in [1, 65536], got 0"),
        ({"settings": {"window": 2.5}}, "window must be a whole number in [1, 65536], got 2.5"),
        ({"settings": {"gain": None}}, "gain must be a number in [0, 10], got None"),
        ({"settings": {"rho": float("nan")}}, "rho must be a number in [0, 1], got nan"),
        ({"of_b": {"tau0": "2"}}, "tau0 must be a number in [1e-06, 1], got 2"),
        ({"of_b": {"rho": "half"}}, "rho must be a number in [0, 1], got 'half'"),
        ({"limit": None}, "max_new_tokens must be a whole number, got None"),
        ({"limit": float("inf")}, "max_new_tokens must be a whole number, got inf"),
        ({"limit": 4097}, "max_new_tokens must be in [0, 4096], got 4097"),
        ({"pixels": 1023}, "max_pixels must be 1,024 or more, got 1,023"),
        ({"pixels": 2000.5}, "max_pixels must be a whole number, got 2000.5"),
        ({"a": "nothing"}, "unknown policy 'nothing'"),
        ({"owner": ""}, "the page is not ready yet"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_starts(make_form, given, error):
    form = make_form()
    answer = press(form, **given)
    assert set(answer) == {"error", "hint"}
    assert error in answer["error"]
    assert form.workbench.store.metrics()["started"] == 0


def test_a_set_that_does_not_fit_is_not_begun_by_half(make_form):
    form = make_form(per_owner=2)
    answer = press(form, LONG, limit=300)
    assert "of your runs are not over" in answer["error"] and answer["hint"]
    assert form.workbench.store.list(OWNER) == []
    assert set(press(form, reference=False)) == {"a", "b"}


def test_several_pictures_stand_in_one_prompt_in_order(make_form, tmp_path):
    """A gallery gives pairs of path and caption. No scene is graded where several pictures are described."""
    form = make_form()
    Image.new("RGB", (96, 64), "teal").save(tmp_path / "wide.png")
    more = [(str(tmp_path / "wide.png"), None), (LONG, "a caption")]
    answer = press(form, more=more, b="", reference=False)
    run = form.workbench.store.get(answer["a"], OWNER)
    wait(run)
    trace = run.trace()
    assert trace.meta.image_size == ((320, 320), (64, 96), (320, 320))
    assert [Image.open(io.BytesIO(picture)).size for picture in trace.pictures] == [
        (320, 320),
        (96, 64),
        (320, 320),
    ]
    assert trace.meta.scene is None and run.truth() is None
    prepared = form.preview(PICTURE, more, "x")
    assert len(prepared.pictures) == 3 and prepared.geometry.image.max() == 2


def test_the_first_picture_may_be_one_of_the_others(make_form):
    assert len(make_form().question(None, "x", more=[LONG, PICTURE]).images) == 2


def test_there_are_at_most_sixteen_pictures(make_form):
    """They are counted before any is opened."""
    assert "17 pictures are too many, the limit is 16" in press(make_form(), more=["gone.png"] * 16)["error"]
    assert "there is no file gone.png" in press(make_form(), more=["gone.png"] * 15)["error"]


def test_the_preview_is_what_the_model_gets(make_form):
    form = make_form()
    assert form.preview(None, None, "x") is None
    prepared = form.preview(PICTURE, None, " ")  # an empty prompt: that of the form
    assert prepared.prompt == CAPTION_PROMPT
    assert prepared.geometry.size == ((320, 320),)
    with pytest.raises(ImageError):
        form.preview(__file__, None, "x")


def test_pictures_are_scaled_down_to_what_a_person_asks_for(make_form):
    form = make_form()
    answer = press(form, limit=1, b="", reference=False, pixels=160.0 * 160)
    run = form.workbench.store.get(answer["a"], OWNER)
    wait(run)
    assert (
        run.trace().meta.image_size == form.preview(PICTURE, None, "x", 25_600).geometry.size == ((160, 160),)
    )


def test_a_prompt_over_the_servers_limit_is_refused_with_what_would_fit(make_form):
    """The picture makes 400 tokens of 16 x 16 pixels; 6 x 6 of them, or a few more, fit beside the prompt."""
    form = make_form()
    form.workbench.max_prompt_tokens = 100
    with pytest.raises(
        PromptError, match="the picture makes 400 tokens of a prompt of 4.., the limit is 100"
    ) as no:
        form.preview(PICTURE, None, CAPTION_PROMPT)
    answer = press(form, b="", reference=False)
    run = form.workbench.store.get(answer["a"], OWNER)
    wait(run, 10)
    assert (run.status, run.steps, run.error.message) == ("error", 0, no.value.message)
    fit = int(re.fullmatch("set max_pixels to ([0-9,]+) or less", run.error.hint)[1].replace(",", ""))
    answer = press(form, limit=1, b="", reference=False, pixels=fit)
    run = form.workbench.store.get(answer["a"], OWNER)
    wait(run)
    assert run.status == "done" and run.trace().meta.prompt_length <= 100


def test_more_tokens_than_the_model_holds_are_refused_before_the_prefill(make_form):
    form, passes = make_form(), []
    hook = form.workbench.captioner().loaded.model.model.register_forward_pre_hook(
        lambda *_: passes.append(1)
    )
    answer = press(form, limit=4096)
    for run_id in answer.values():
        run = form.workbench.store.get(run_id, OWNER)
        wait(run, 10)
        assert (run.status, run.steps) == ("error", 0)
        assert "more than the 4096 that bundled-captioner can hold" in run.error.message and run.error.hint
    assert passes == []
    run = form.workbench.store.get(press(form, limit=1)["a"], OWNER)
    wait(run)
    hook.remove()
    assert passes  # a run that fits is seen by the hook


def test_the_command_line_sets_the_limit_of_tokens():
    options = parser().parse_args(["--max-prompt-tokens", "5000"])
    assert studies_of(options, RunStore()).workbench.max_prompt_tokens == 5000
    assert parser().parse_args([]).max_prompt_tokens == 16_384


def test_every_setting_has_its_place_and_every_preset_is_one(make_form):
    names = setting_names()
    assert sorted(names) == sorted(Settings().to_dict())
    assert tuple(names[: len(MAIN_SETTINGS)]) == MAIN_SETTINGS
    form = make_form()
    for preset, values in PRESETS.items():
        assert tuple(values) == MAIN_SETTINGS  # the controls that a preset fills, in their order
        assert isinstance(settings_from(values), Settings)
        assert form.preset_values(preset) == list(values.values())
    assert at_first(form) == Settings().to_dict() | PRESETS[form.reset()[0]]
    assert form.reset()[2 + len(names) :] == [*(None for _ in MAIN_SETTINGS), 0]  # none of B's, no limit


def test_whole_numbers_may_come_as_fractions_that_are_whole():
    assert settings_from({"select": 48.0, "rho": 1}).select == 48
    assert whole_number("n", 3.0) == 3
    for wrong in (True, "3", None, 3.5, float("nan")):
        with pytest.raises(SettingsError, match="n must be a whole number"):
            whole_number("n", wrong)
    for wrong in ({"select": 2.5}, {"selekt": 1}, ["select"], "select"):
        with pytest.raises(SettingsError):
            settings_from(wrong)


@pytest.mark.parametrize("prompt", ["", "\n\t ", "a" * 20_001])
def test_a_question_has_a_prompt_of_a_sane_length(prompt):
    with pytest.raises(PromptError) as refused:
        Question(Image.new("RGB", (9, 9)), prompt)
    assert refused.value.hint


def test_a_scene_is_known_by_its_pixels_alone(make_form):
    for name in EXAMPLES:
        with Image.open(EXAMPLES_FOLDER / f"{name}.png") as image:
            assert scene_in(image.convert("RGB")).seed == EXAMPLES[name][0]
    image, seed = make_form().scene(77)
    assert scene_in(image) is None and scene_in(image, seed) == make_scene(77)
    image.putpixel((0, 0), (1, 2, 3))
    assert scene_in(image, seed) is None
    assert scene_in(Image.new("RGB", (9, 9)), seed) is None


def test_a_new_scene_is_one_that_the_model_was_not_trained_on(make_form):
    form = make_form()
    seeds = {form.scene()[1] for _ in range(20)}
    assert len(seeds) == 20 and all(0 <= seed < 1_000_000 for seed in seeds)
    for wrong in (-1, 1_000_000, 0.5, float("nan")):
        with pytest.raises(SettingsError, match="seed must be a whole number in .0, 999999."):
            form.scene(wrong)


def test_a_scene_of_a_seed_is_graded(make_form, tmp_path):
    form = make_form()
    image, seed = form.scene(4711)
    image.save(tmp_path / "scene.png")
    answer = press(form, str(tmp_path / "scene.png"), b="", reference=False, seed=float(seed))
    run = form.workbench.store.get(answer["a"], OWNER)
    wait(run)
    assert run.truth()["total"] == len(make_scene(4711).objects)
    assert run.trace().meta.scene["seed"] == 4711


def test_a_model_that_cannot_be_loaded_fails_its_runs_in_words(make_form, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    broken = Workbench(Models([str(tmp_path)]))
    assert broken.server()["state"] == "loading"
    broken.load()
    with pytest.raises(LoadError):
        broken.captioner(30)
    told = broken.server()
    assert told["state"] == "failed" and tmp_path.name in told["error"]
    form = make_form(broken)
    run = form.workbench.store.get(press(form)["a"], OWNER)
    wait(run, 10)
    assert run.status == "error" and tmp_path.name in run.error.message and run.error.hint
    with pytest.raises(LoadError):
        form.preview(PICTURE, None, "x")


def test_an_unexpected_failure_to_load_is_told_too(make_form, monkeypatch):
    def failing(*about, **more):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("rcr_core.serving.models.load_model", failing)
    monkeypatch.setattr("threading.excepthook", lambda about: None)
    broken = Workbench()
    broken.load()
    with pytest.raises(ScopeError, match="cannot be loaded: RuntimeError: out of luck"):
        broken.captioner(30)


def test_a_run_that_starts_early_waits_for_the_model():
    bench = Workbench()
    question = Question(Image.open(PICTURE).convert("RGB"), CAPTION_PROMPT)
    run = bench.start(OWNER, question, CaptionRequest("snapkv", max_new_tokens=2))
    time.sleep(0.2)
    assert run.status == "loading"
    bench.load()
    wait(run)
    assert (run.status, run.steps) == ("done", 2)
    bench.store.close()


def test_the_server_tells_what_it_runs_on():
    told = LOADED.server()
    assert (told["model"], told["state"], told["device"]) == ("bundled-captioner", "ready", "cpu")
    assert told["layers"] > 0 and told["store"]["runs"] == 0


def test_another_model_begins_with_the_papers_preset():
    other = Workbench(Models(["somebody/some-model"]))
    assert not other.bundled
    assert (other.server()["model"], other.preset) == ("some-model", "Paper: 32 entries, rate .4")
    assert "scene" not in other.prompt
    assert LOADED.bundled and LOADED.prompt == CAPTION_PROMPT


def test_the_examples_are_for_everybody_and_a_broken_one_is_left_out(tmp_path, caplog):
    shipped = next(EXAMPLES_FOLDER.glob("*-rcr.rcr"))
    (tmp_path / shipped.name).write_bytes(shipped.read_bytes())
    (tmp_path / "broken-rcr.rcr").write_bytes(b"not a trace")
    store = RunStore()
    assert add_examples(store, tmp_path) == [shipped.stem]
    assert "broken-rcr.rcr is left out" in caplog.text
    (run,) = store.list("anybody-at-all-here")
    assert (run.public, run.kind, run.policy) == (True, "example", "rcr")
    assert run.policy in POLICIES and run.truth()["total"] > 0
