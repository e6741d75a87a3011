"""A click picks what is under the pointer: a patch of any grid at any zoom, a layer-step, a word."""

from __future__ import annotations

import numpy as np
import pytest

from tests.app.browser import truths
from tests.app.browser.conftest import SYNTHETIC
from tests.app.browser.opening import columns, go, hold, opened, owners_context, watching
from tests.app.browser.shapes import SHAPES, L, N, made_trace

ZOOMS = [(1, 0.5, 0.5), (2.5, 0.4, 0.55), (6, 0.3, 0.7)]
CLICKS = 7  # for each of 5 shapes, 3 zooms and 2 kinds of displays
VIEW = {"width": 1400, "height": 1500}


@pytest.fixture(scope="module")
def runs(store):
    """Ids of two runs of each shape."""
    policies = ("rcr", "full")
    return {shape: [hold(store, made_trace(shape, policy)).id for policy in policies] for shape in SHAPES}


@pytest.fixture(scope="module", params=[1, 2], ids=["plain display", "fine display"])
def display(chromium, address, runs, request):
    """A page on a display of one or of four pixels a CSS pixel."""
    with watching(chromium, address) as watched:
        context = owners_context(watched, address, viewport=VIEW, device_scale_factor=request.param)
        yield opened(context, address, f"a={runs['square'][0]}")


@pytest.fixture(scope="module")
def scope(chromium, address, runs):
    with watching(chromium, address) as watched:
        context = owners_context(watched, address, viewport=VIEW)
        yield opened(context, address, f"a={runs['square'][0]}")


@pytest.fixture
def rng(request):
    return np.random.default_rng(list(request.node.name.encode()))


def rectangle(page, selector: str, index: int = 0) -> np.ndarray:
    """x, y, width, height of an element in the window."""
    box = page.locator(selector).nth(index).bounding_box()
    return np.array([box["x"], box["y"], box["width"], box["height"]])


def points(shape: str, pane: np.ndarray, zoom, rng) -> dict[int, np.ndarray]:
    """A random point in what is in sight of each patch, in the window."""
    place = SHAPES[shape]
    picture = np.array(place.sizes[0][::-1], float)
    picture *= zoom[0] * min(pane[2:] / picture)
    corner = pane[:2] + pane[2:] / 2 - np.array(zoom[1:]) * picture
    first, level = place.column("image") == 0, place.column("level")
    drawn = first & (level == level[first].max()) & ~np.isnan(place.box).any(1)
    low = np.maximum(corner + place.box[:, :2] * picture, pane[:2])
    high = np.minimum(corner + place.box[:, 2:] * picture, pane[:2] + pane[2:])
    found = low + (high - low) * rng.uniform(0.15, 0.85, (place.count, 2))
    return {int(patch): found[patch] for patch in np.flatnonzero(drawn & (high > low + 6).all(1))}


@pytest.mark.parametrize("zoom", ZOOMS, ids=["whole", "zoomed", "close"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_click_on_a_picture_picks_the_patch_there(display, runs, rng, shape, zoom):
    a, b = runs[shape]
    go(display, f"a={a}&b={b}&f=0&s=3&z={','.join(map(str, zoom))}")
    panes = [rectangle(display, ".scope-pane-box", index) for index in range(2)]
    picked = None
    for count in range(CLICKS):
        there = points(shape, panes[count % 2], zoom, rng)
        patch = int(rng.choice([patch for patch in there if patch != picked]))
        display.mouse.click(*there[patch])
        picked = display.evaluate("rcrScope.state.patch")
        assert picked == patch
    display.mouse.click(*there[patch])
    assert display.evaluate("rcrScope.state.patch") is None  # a second click lets go


def test_the_words_at_the_pointer_are_of_the_patch_there(scope, runs, rng):
    trace, step = made_trace("tiled"), 9
    go(scope, f"a={runs['tiled'][0]}&f=0&s={step}&l=4")
    value, now = truths.value(trace, step, 4), truths.kept_by_any(trace, step, 4)
    before = truths.kept_by_any(trace, step - 1, 4)
    names = {(1, 1): "kept", (1, 0): "just in", (0, 1): "just out", (0, 0): "evicted"}
    there, seen = points("tiled", rectangle(scope, ".scope-pane-box"), ZOOMS[0], rng), set()
    for patch in [*rng.choice(list(there), 6), *np.flatnonzero(now), *np.flatnonzero(before & ~now)]:
        if patch not in there:
            continue
        scope.mouse.move(*there[patch])
        state = names[int(now[patch]), int(before[patch])]
        text = f"patch {patch}: attention {truths.short(value[patch])}, {state}"
        scope.wait_for_function(
            "(text) => document.querySelector('.scope-tip').textContent === text", arg=text
        )
        seen.add(state)
    assert seen == set(names.values())


@pytest.mark.parametrize("which", ["a", "b"])
def test_a_click_on_a_raster_goes_to_its_step_and_layer(display, runs, rng, which):
    a, b = runs["wide"][0], runs["square"][0]
    go(display, f"a={a}&b={b}&f=0")
    click_cells(display, which, rng, N, L, 12)


def test_a_click_on_a_raster_of_400_steps_goes_to_its_step_and_layer(scope, rng):
    go(scope, f"a={SYNTHETIC[0]}&f=0")
    click_cells(scope, "a", rng, 400, 28, 12)


def click_cells(scope, which, rng, steps, layers, count):
    selector = f".timelines-raster:nth-child({2 if which == 'a' else 3}) canvas"
    chosen = rng.integers(0, (steps, layers), (count, 2)).tolist()
    x = columns(scope, selector, [step for step, _ in chosen])
    scope.evaluate(
        "(selector) => document.querySelector(selector).scrollIntoView({ block: 'center' })", selector
    )
    left, top, _, height = rectangle(scope, selector)
    column = np.ptp(x) / np.ptp([step for step, _ in chosen])
    for (step, layer), across in zip(chosen, x, strict=True):
        across += rng.uniform(-0.4, 0.4) * max(column - 2, 0)  # a mouse is on a whole pixel
        scope.mouse.click(left + across, top + 2 + (layer + 0.5) * (height - 4) / layers)
        state = scope.evaluate("rcrScope.state")
        assert (state["step"], state["layer"]) == (step, layer)


def test_words_table_rows_and_entries_can_be_clicked(scope, runs):
    trace = made_trace("square")
    go(scope, f"a={runs['square'][0]}&f=0&s=2&l=3")
    scope.locator(".scope-words").first.locator(".scope-word").nth(17).click()
    assert scope.evaluate("rcrScope.state.step") == 17
    chosen = sorted(trace.selection(17, 3)[0])
    slot, patch = next((at, index - 5) for at, index in enumerate(chosen) if index >= 5)
    scope.evaluate("new Promise(requestAnimationFrame)")
    scope.locator(".scope-slots-row").first.locator(".scope-chip").nth(slot).click()
    assert scope.evaluate("rcrScope.state.patch") == patch
    scope.locator(".scope-tables summary").first.click()
    scope.locator(".scope-table button", has_text="12").first.click()
    assert scope.evaluate("rcrScope.state.step") == 12


def test_only_layers_that_both_runs_have_can_be_chosen(scope, runs, store):
    """Runs of two models may be open side by side; no view shows numbers of a layer that is not there."""
    shallow = hold(store, made_trace("square", layers=3)).id
    go(scope, f"a={runs['square'][0]}&b={shallow}&f=0&s=4&l=5")
    assert scope.evaluate("rcrScope.state.layer") == 2
    left, top, _, height = rectangle(scope, ".timelines-raster canvas")
    scope.mouse.click(left + 200, top + 2 + 4.5 * (height - 4) / L)
    assert scope.evaluate("rcrScope.state.layer") == 2
    scope.keyboard.press("ArrowDown")
    assert scope.evaluate("rcrScope.state.layer") == 2
    assert scope.get_by_label("layer", exact=True).locator("option").count() == 1 + 3


def test_a_patch_that_one_run_lacks_is_described_for_the_other_alone(scope, runs, rng):
    go(scope, f"a={runs['tiled'][0]}&b={runs['tall'][0]}&f=0&s=4")
    there = points("tiled", rectangle(scope, ".scope-pane-box"), ZOOMS[0], rng)
    scope.mouse.click(*there[max(there)])
    scope.wait_for_function(
        f"document.querySelector('.scope-patch-facts').textContent.includes('Patch {max(there)}')"
    )
    assert [one.is_visible() for one in scope.locator(".scope-patch-facts").all()] == [True, False]
