"""A prompt of several pictures: a strip of them all, and each in the panes with what is its own."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from rcr_core.bundled.examples import EXAMPLES_FOLDER
from rcr_core.trace import PromptPiece
from tests.app.browser import truths
from tests.app.browser.form import (
    choose_scene,
    leave,
    notice,
    press_run,
    press_run_and_read,
    short_runs,
    shown_run,
    wait_for_end,
)
from tests.app.browser.opening import FRAMES, go, hold, opened, owners_context, watching
from tests.app.browser.shapes import SHAPES, made_trace

VIEW = {"width": 1400, "height": 1500}
PLACE = SHAPES["several"]
MAPS = ("map_mean", "map_layer", "missed_layer", "map_full", "map_head")
CELLS = ".scope-film-cell"
CHOSEN = "[...document.querySelectorAll('.scope-film-cell')].map((one) => one.ariaPressed)"


def frames(trace):
    """The trace as that of a single picture in three frames."""
    picture = trace.pictures[0]
    meta = replace(trace.meta, image_size=trace.meta.image_size[:1])
    still = np.zeros_like(trace.patch_image)
    return replace(
        trace, meta=meta, patch_image=still, patch_frame=trace.patch_image, image=picture, image_end=None
    )


def without_pictures(trace):
    """The trace as that of a prompt of text alone."""
    maps = {name: array[..., :0] for name, array in trace.arrays().items() if name.endswith(MAPS)}
    places = {name: array[:0] for name, array in trace.arrays().items() if name.startswith("patch_")}
    text = [PromptPiece(f" t{at}", at, 1, "text") for at in range(trace.meta.prompt_length)]
    meta = replace(trace.meta, image_size=(), prompt_pieces=tuple(text))
    return replace(trace, meta=meta, image=trace.image[:0], image_end=None, **maps, **places)


@pytest.fixture(scope="module")
def runs(store):
    """Runs of three pictures; of one whose file holds the first alone; and of three frames."""
    made = {policy: made_trace("several", policy) for policy in ("rcr", "bacon")}
    made["old"] = replace(made["rcr"], image=made["rcr"].pictures[0], image_end=None)
    made["frames"] = frames(made["rcr"])
    made["text"] = without_pictures(made["rcr"])
    made["one"] = made_trace("square")
    return {name: hold(store, trace) for name, trace in made.items()}


@pytest.fixture(scope="module")
def scope(chromium, address, runs):
    with watching(chromium, address) as watched:
        context = owners_context(watched, address, viewport=VIEW)
        yield opened(context, address, f"a={runs['rcr'].id}&b={runs['bacon'].id}")


def pair(runs, a: str = "rcr", b: str = "bacon") -> str:
    return f"a={runs[a].id}&b={runs[b].id}&f=0"


def points(page, image: int, which: int = 0) -> dict[int, tuple[float, float]]:
    """The middle of each patch of a picture that a pane shows whole, in the window."""
    box = page.locator(".scope-pane-box").nth(which).bounding_box()
    height, width = PLACE.sizes[image]
    scale = min(box["width"] / width, box["height"] / height)
    left = box["x"] + (box["width"] - width * scale) / 2
    top = box["y"] + (box["height"] - height * scale) / 2
    middle = (PLACE.box[:, :2] + PLACE.box[:, 2:]) / 2 * [width * scale, height * scale] + [left, top]
    return {int(patch): tuple(middle[patch]) for patch in np.flatnonzero(PLACE.column("image") == image)}


@pytest.mark.parametrize(
    ("layer", "head", "name"), [("mean", "mean", "attention"), (3, 1, "attention"), (4, "mean", "missed")]
)
def test_the_bars_are_the_shares_of_each_picture(scope, runs, layer, head, name):
    for step in (2, 11, 23):
        go(scope, f"{pair(runs)}&s={step}&l={layer}&h={head}&m={name}")
        cells = scope.locator(CELLS)
        assert cells.count() == 3
        shares = []
        for policy in ("rcr", "bacon"):
            values = truths.value(runs[policy].trace(), step, layer, name, head).astype(float)
            sums = np.bincount(PLACE.column("image"), values)
            shares.append(sums / sums.sum())
        for picture in range(3):
            for which, share in enumerate(shares):
                bar = cells.nth(picture).locator(".scope-film-bar").nth(which)
                drawn = float(bar.evaluate("(one) => one.style.getPropertyValue('--share')"))
                assert drawn == pytest.approx(share[picture], abs=6e-4)
            told = ", ".join(
                f"{which} {100 * share[picture]:.0f} %" for which, share in zip("AB", shares, strict=True)
            )
            assert cells.nth(picture).get_attribute("aria-label") == f"picture {picture + 1}: {told}"


def test_a_picture_is_chosen_by_mouse_by_tab_and_by_key(scope, runs):
    go(scope, f"{pair(runs)}&s=5")
    scope.locator(CELLS).nth(1).click()
    scope.evaluate(FRAMES)
    assert scope.evaluate(f"[rcrScope.state.picture, {CHOSEN}]") == [1, ["false", "true", "false"]]
    scope.keyboard.press("Tab")
    scope.keyboard.press("Enter")
    assert scope.evaluate("[rcrScope.state.picture, rcrScope.state.step]") == [2, 5]
    for key, picture in (("i", 2), ("I", 1), ("I", 0), ("I", 0), ("i", 1)):
        scope.keyboard.press(key)
        assert scope.evaluate("rcrScope.state.picture") == picture
    assert "i=1" in scope.evaluate("rcrScope.fragment").split("&")


def test_the_panes_show_the_chosen_picture_and_pick_its_patches(scope, runs):
    rng = np.random.default_rng(3)
    heights = set()
    for picture in range(3):
        go(scope, f"{pair(runs)}&s=9&i={picture}")
        heights.add(scope.locator(".scope-pane-box").first.bounding_box()["height"])
        for which in (0, 1):
            there = points(scope, picture, which)
            for patch in rng.choice(list(there), 4, replace=False).tolist():
                scope.mouse.click(*there[patch])
                assert scope.evaluate("rcrScope.state.patch") == patch
    assert len(heights) == 1  # nothing below the panes moves


def test_the_words_at_the_pointer_name_the_picture(scope, runs):
    go(scope, f"{pair(runs)}&s=9&l=4&i=2")
    value = truths.value(runs["rcr"].trace(), 9, 4)
    patch, point = list(points(scope, 2).items())[7]
    scope.mouse.move(*point)
    text = f"patch {patch} of picture 3: attention {truths.short(value[patch])}, "
    scope.wait_for_function(
        "(text) => document.querySelector('.scope-tip').textContent.startsWith(text)", arg=text
    )


def test_the_note_says_what_rests_on_this_picture(scope, runs):
    go(scope, f"{pair(runs)}&s=9&i=1")
    values = truths.value(runs["rcr"].trace(), 9, "mean").astype(float)
    share = truths.percent(values[PLACE.column("image") == 1].sum())
    assert f", {share} on this picture" in scope.locator(".scope-pane-note").first.inner_text()


def test_picking_the_brightest_patch_shows_its_picture(scope, runs):
    values = runs["rcr"].trace().map_mean
    step = next(at for at in range(1, len(values)) if PLACE.column("image")[values[at].argmax()] == 2)
    go(scope, f"{pair(runs)}&s={step}")
    scope.keyboard.press("p")
    state = scope.evaluate("rcrScope.state")
    assert (state["patch"], state["picture"]) == (int(values[step].argmax()), 2)


def test_the_difference_is_of_the_chosen_picture(scope, runs):
    """A patch with the largest difference of all is drawn in its own picture, and in no other."""
    go(scope, f"{pair(runs)}&s=9&c=1&i=0&o=1")
    pictures = []
    for picture in range(3):
        go(scope, f"{pair(runs)}&s=9&c=1&i={picture}&o=1")
        pictures.append(scope.locator(".scope-pane-difference canvas").screenshot())
    assert len(set(pictures)) == 3


def test_a_file_with_the_first_picture_alone_still_has_the_places_of_the_others(scope, runs):
    go(scope, f"a={runs['old'].id}&f=0&s=4&i=1")
    assert scope.locator(CELLS).count() == 3
    patch, point = list(points(scope, 1).items())[6]
    scope.mouse.click(*point)
    assert scope.evaluate("rcrScope.state.patch") == patch


def test_frames_of_a_picture_are_gone_through_like_pictures(scope, runs):
    go(scope, f"a={runs['frames'].id}&f=0&s=4")
    names = [cell.get_attribute("aria-label").split(":")[0] for cell in scope.locator(CELLS).all()]
    assert names == [f"picture 1, frame {frame}" for frame in (1, 2, 3)]
    assert scope.locator(".scope-film-name").all_inner_texts() == ["1·1", "1·2", "1·3"]


def test_one_picture_has_no_strip_and_a_pair_shows_the_longer_one(scope, runs):
    go(scope, f"a={runs['one'].id}&f=0&i=2")
    assert not scope.locator(".scope-film").is_visible()
    assert scope.evaluate("rcrScope.state.picture") == 0
    go(scope, f"{pair(runs, 'one', 'rcr')}&i=2&s=3")
    assert scope.locator(CELLS).count() == 3
    assert scope.evaluate("rcrScope.state.picture") == 2


def test_a_run_of_text_alone_has_its_prompt_and_no_pictures(scope, runs):
    go(scope, f"a={runs['text'].id}&f=0&s=5&l=4")
    assert not scope.locator(".scope-film").is_visible()
    cells = scope.locator(".scope-pane-a .scope-token")
    assert cells.count() == runs["text"].trace().meta.prompt_length
    kept = len(np.unique(runs["text"].trace().selection(5, 4)))
    drawn = scope.locator(".scope-pane-a .scope-token-kept, .scope-pane-a .scope-token-in")
    assert drawn.count() == kept


@pytest.fixture
def pictures(tmp_path):
    """Two picture files of other sizes than a scene's."""
    paths = []
    for size in ((320, 192), (192, 256)):
        with Image.open(EXAMPLES_FOLDER / "3-seven-objects.png") as image:
            image.convert("RGB").resize(size).save(tmp_path / f"{size[0]}.png")
        paths.append(tmp_path / f"{size[0]}.png")
    return paths


def test_a_run_of_three_pictures_from_the_form(page, store, pictures):
    short_runs(page)
    choose_scene(page, 0)
    page.get_by_role("button", name="More pictures").click()
    page.locator("#more input[type=file]").first.set_input_files(pictures)
    page.wait_for_function("document.querySelectorAll('#more .thumbnail-item img').length === 2")
    press_run(page)
    wait_for_end(page)
    assert page.locator(CELLS).count() == 3 and not notice(page)
    trace = shown_run(store, page, "a").trace()
    assert trace.meta.image_size == ((320, 320), (192, 320), (256, 192))
    assert [Image.open(io.BytesIO(one)).size for one in trace.pictures] == [
        (320, 320),
        (320, 192),
        (192, 256),
    ]
    leave(store, page)


def test_more_than_sixteen_pictures_are_refused_in_words(page, store, pictures):
    choose_scene(page, 0)
    page.get_by_role("button", name="More pictures").click()
    page.locator("#more input[type=file]").first.set_input_files(pictures * 8)
    page.wait_for_function("document.querySelectorAll('#more .thumbnail-item img').length === 16")
    assert "17 pictures are too many, the limit is 16" in press_run_and_read(page)
    leave(store, page)
