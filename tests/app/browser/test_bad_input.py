"""Whatever a person puts in, the page says what is wrong and what to do, runs no script, and works on."""

from __future__ import annotations

import threading

import pytest

import app
from rcr_core.errors import ScopeError
from rcr_core.runs import RunStore
from tests.app.browser.conftest import Watched, free_port
from tests.app.browser.form import (
    LIVE,
    SHORT,
    choose_file,
    choose_scene,
    dismiss,
    fill,
    leave,
    notice,
    own_runs,
    owner,
    press_run,
    press_run_and_read,
    remove_picture,
    short_runs,
    shown_run,
    wait_for_end,
    wait_until_idle,
)
from tests.app.browser.pictures import bad_pictures, good_pictures

USABLE = "use a PNG, JPEG, WebP, GIF or BMP picture"
REFUSED = {  # kind of picture -> what is wrong, what to do
    "SVG": ("drawing.svg is not a picture that can be read", USABLE),
    "text": ("notes.png is not a picture that can be read", USABLE),
    "empty": ("empty.png is empty", USABLE),
    "cut off": ("cut.png is damaged or cut off", "save or download it again"),
    "bomb": ("bomb.png has more than 50 megapixels", "scale it down"),
    "one pixel": ("one.png is too small: 1 x 1 pixels", "at least 8 pixels"),
    "elongated": ("wide.png is too elongated: 4000 x 10 pixels", "at most 100 times"),
}
GOOD = (
    "animated GIF",
    "CMYK JPEG",
    "16-bit PNG",
    "palette with transparency",
    "EXIF rotation",
    "markup as a name",
)
SETTINGS = {  # field -> a wrong value, and the words about it
    "select": ("0", "select must be a whole number in [1, 65536], got 0"),
    "window": ("2.5", "window must be a whole number in [1, 65536], got 2.5"),
    "tau0": ("-1", "tau0 must be a number in [1e-06, 1], got -1"),
    "rho": ("7", "rho must be a number in [0, 1], got 7"),
    "gain": ("", "gain must be a number in [0, 10], got None"),
    "max_new_tokens": ("5000", "max_new_tokens must be in [0, 4096], got 5000"),
}
PROMPTS = {
    "markup": '<img src=x onerror="window.hit=1"><script>window.hit=1</script>',
    "markdown": "[a link](javascript:window.hit=1) <b>bold</b> $$x$$",
    "emoji and right to left": "Descrivi 🐱👩‍👩‍👧 صف هذه الصورة תאר \u202eabc",
}


@pytest.fixture(scope="module")
def form(chromium, address, store):
    """A page that is used by one test after the other, as a person would."""
    watched = Watched(chromium, address)
    page = watched.page(address)
    short_runs(page)
    choose_scene(page, 0)
    yield page
    leave(store, page)
    page.context.close()
    watched.check()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    return bad_pictures(folder), good_pictures(folder)


def check_it_works(page) -> None:
    """A good run right after, on the same page, whose form keeps its state."""
    press_run(page)
    wait_for_end(page)
    assert page.evaluate("rcrScope.steps") == {"a": SHORT, "b": SHORT}
    assert not notice(page)
    assert page.evaluate("window.hit") is None


def test_every_kind_of_picture_has_its_test(pictures):
    bad, good = pictures
    assert set(bad) == set(REFUSED) and set(good) == set(GOOD)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_picture_that_cannot_be_used_is_refused_in_words(form, pictures, store, kind):
    choose_file(form, pictures[0][kind])
    before = len(own_runs(store, form))
    said = press_run_and_read(form)
    wrong, hint = REFUSED[kind]
    assert wrong in said and hint in said
    assert len(own_runs(store, form)) == before
    dismiss(form)
    choose_scene(form, 0)
    check_it_works(form)


def test_a_file_that_is_not_even_named_a_picture_is_turned_away(form, tmp_path):
    (tmp_path / "notes.txt").write_text("I am no picture.")
    remove_picture(form)
    form.locator("#picture input[type=file]").first.set_input_files(tmp_path / "notes.txt")
    form.wait_for_function("/Invalid file type: notes.txt/.test(document.body.textContent)")
    assert "there is no picture yet" in press_run_and_read(form)
    assert "pick an example" in notice(form)
    choose_scene(form, 0)
    check_it_works(form)


@pytest.mark.parametrize("kind", GOOD)
def test_a_picture_of_any_usable_kind_works(form, pictures, store, kind):
    path, size = pictures[1][kind]
    choose_file(form, path)
    check_it_works(form)
    width, height = size
    assert shown_run(store, form, "a").trace().meta.image_size == ((height, width),)
    shown = form.evaluate(
        """async ([id, headers]) => {
          const answer = await fetch(`/scope/runs/${id}/image`, { headers });
          const picture = await createImageBitmap(await answer.blob());
          return picture.width > picture.height;
        }""",
        [form.evaluate("rcrScope.state.a"), {"X-Scope-Owner": owner(form)}],
    )
    assert shown == (width > height)


@pytest.mark.parametrize("field", SETTINGS)
def test_a_setting_out_of_its_range_is_named(form, field):
    value, words = SETTINGS[field]
    box = form.locator("#rail").get_by_label(field, exact=True)
    before = box.input_value()
    fill(form, field, value)
    assert words in press_run_and_read(form)
    fill(form, field, before)
    check_it_works(form)


def test_pictures_are_scaled_down_to_max_pixels(form, store):
    """A number of pixels that no model reads is refused; an empty field is no limit."""
    choose_scene(form, 4)
    field = form.locator("#max-pixels input")
    if not field.is_visible():  # another test may have left the settings open
        form.locator("#rail").get_by_role("button", name="More settings").click()
        field.wait_for()
    fill(form, "max_pixels", "1023")
    assert "max_pixels must be 1,024 or more, got 1,023" in press_run_and_read(form)
    for value, side in (("25600", 160), ("", 320)):
        fill(form, "max_pixels", value)
        press_run(form)
        wait_for_end(form)
        assert shown_run(store, form, "a").trace().meta.image_size == ((side, side),)
        wait_until_idle(store, form)


def test_more_tokens_than_the_model_holds_are_refused_in_words(form, store):
    fill(form, "max_new_tokens", "4096")
    press_run(form)
    words = "more than the 4096 that bundled-captioner can hold"
    form.wait_for_function(
        "(words) => document.querySelector('#scope').textContent.includes(words)", arg=words
    )
    wait_until_idle(store, form)
    fill(form, "max_new_tokens", str(SHORT))
    check_it_works(form)


def test_a_seed_that_no_scene_has_is_named(form):
    seed = form.locator("#new-scene input")
    seed.fill("1000000")
    seed.press("Enter")
    words = "seed must be a whole number in [0, 999999], got 1000000"
    form.wait_for_function("(words) => document.body.textContent.includes(words)", arg=words)
    check_it_works(form)
    seed.fill("")


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("  \n ", "the prompt is empty"),
        ("a" * 100_000, "the prompt has 100,000 characters, the limit is 20,000"),
    ],
    ids=["empty", "100,000 characters"],
)
def test_a_prompt_that_is_none_is_refused(form, prompt, words):
    before = form.locator("#prompt textarea").input_value()
    form.locator("#prompt textarea").fill(prompt)
    said = press_run_and_read(form)
    assert words in said and ("write what" in said or "shorten it" in said)
    form.locator("#prompt textarea").fill(before)
    check_it_works(form)


@pytest.mark.parametrize("kind", PROMPTS)
def test_a_prompt_is_text_and_never_markup(form, store, kind):
    before = form.locator("#prompt textarea").input_value()
    form.locator("#prompt textarea").fill(PROMPTS[kind])
    check_it_works(form)
    assert shown_run(store, form, "a").trace().meta.prompt == PROMPTS[kind]
    form.get_by_role("tab", name="Runs").click()
    form.wait_for_timeout(300)
    form.get_by_role("tab", name="Scope").click()
    assert form.evaluate("window.hit") is None
    assert form.locator("img[onerror], a[href^=javascript]").count() == 0
    form.locator("#prompt textarea").fill(before)


def test_run_pressed_ten_times_loses_nothing(form, store):
    """What does not fit is refused in words; what was taken is listed, and the newest pair is in view."""
    before = len(own_runs(store, form))
    fill(form, "max_new_tokens", "30")
    for _ in range(10):
        form.locator("#run").click()
        form.wait_for_timeout(30)
    form.wait_for_function(f"{LIVE}")
    form.wait_for_timeout(1500)
    runs = own_runs(store, form)
    started = len(runs) - before
    assert started >= 3 and started % 3 == 0  # whole sets of A, B and the reference
    newest = {run.policy: run.id for run in runs[:3]}
    assert form.evaluate("[rcrScope.state.a, rcrScope.state.b]") == [newest["rcr"], newest["bacon"]]
    if said := notice(form):
        assert "of your runs are not over" in said
        dismiss(form)
    wait_for_end(form)
    fill(form, "max_new_tokens", str(SHORT))
    check_it_works(form)


def test_a_set_that_does_not_fit_is_not_begun_by_half(form, store):
    """Five of at most six runs are there: neither A nor B of the next three may stay behind."""
    wait_until_idle(store, form)
    release = hold_places(store, owner(form), 5)
    assert "of your runs are not over" in press_run_and_read(form)
    assert sum(not run.finished for run in own_runs(store, form)) == 5
    release()
    check_it_works(form)


def hold_places(store, who: str, count: int):
    """Fill the queue of a person with runs that wait; what ends them is returned."""
    gate = threading.Event()

    def make():
        gate.wait(30)
        raise ScopeError("only held a place")

    runs = [store.start(who, make, policy="full", label="held") for _ in range(count)]

    def release():
        gate.set()
        for run in runs:
            store.drop(run.id, who)

    return release


def test_a_model_that_cannot_be_loaded_is_told_on_the_page(chromium, pictures, tmp_path):
    store = RunStore()
    options = app.parser().parse_args(["--port", str(free_port()), "--model", str(tmp_path / "no-model")])
    served = app.serve(options, store, prevent_thread_lock=True)
    watched = Watched(chromium, served.local_url)
    page = watched.page(served.local_url)
    choose_file(page, pictures[1]["CMYK JPEG"][0])
    said = press_run_and_read(page)
    assert "no-model" in said
    page.wait_for_function("/failed/.test(document.querySelector('.scope-status-line').textContent)")
    page.context.close()
    served.close()
    store.close()
    watched.check()
