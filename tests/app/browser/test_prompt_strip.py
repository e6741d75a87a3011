"""The prompt's text under a pane: every kept entry has a place, and each cell looks as the trace says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.app.browser.conftest import SYNTHETIC
from tests.app.browser.opening import go, hold, opened, owners_context, watching
from tests.app.browser.shapes import BEFORE, IN_WINDOW, SHAPES, WINDOW, H, made_trace

LOOKS = "[...document.querySelectorAll('{} .scope-token')].map((one) => one.className)"
STRIP = ".scope-pane-a .scope-prompt-cells"
TOLD = ".scope-pane-a .scope-prompt-told"


@pytest.fixture(scope="module")
def runs(store):
    shapes = {"several": ("rcr", "bacon"), "tiled": ("rcr", "full")}
    return {
        (shape, policy): hold(store, made_trace(shape, policy))
        for shape, policies in shapes.items()
        for policy in policies
    }


@pytest.fixture(scope="module")
def scope(chromium, address, runs):
    with watching(chromium, address) as watched:
        context = owners_context(watched, address, viewport={"width": 1400, "height": 1500})
        yield opened(context, address, f"a={runs['several', 'rcr'].id}")


def share(trace, step: int, layers, heads, piece) -> float:
    """Of the (layer, KV head) pairs, the share that keeps a piece of text, by its tokens."""
    tokens = np.arange(piece.start, piece.start + piece.count)
    found = []
    for layer in layers:
        chosen = trace.selection(step, layer)
        for head in heads:
            found.append(1.0 if chosen is None else np.isin(tokens, chosen[head]).mean())
    return float(np.mean(found))


def look(trace, step: int, layer, head, piece) -> str:
    """What a cell must look like, worked out from the trace alone."""
    if piece.kind == "image":
        return "image"
    if piece.start >= trace.meta.prefix_length:
        return "fixed"
    layers = np.flatnonzero(trace.meta.managed) if layer == "mean" else [layer]
    heads = range(H) if head == "mean" else [head]
    if all(trace.selection(step, one) is None for one in layers):
        return "whole"
    now, before = (share(trace, at, layers, heads, piece) for at in (step, max(step - 1, 0)))
    state = {(1, 1): "kept", (1, 0): "in", (0, 1): "out", (0, 0): "evicted"}[now > 0, before > 0]
    if state == "evicted":
        return state
    share_then = min(2 * (before if state == "out" else now), 1)
    return f"{state} scope-strength-{math.ceil(3 * share_then - 1e-6) - 1}"  # a third is exactly one of three


@pytest.mark.parametrize("shape", ["several", "tiled"])
def test_every_cell_looks_as_the_trace_says(scope, runs, shape):
    rng, seen = np.random.default_rng(11), set()
    trace = runs[shape, "rcr"].trace()
    views = [(0, "mean", "mean"), (5, 0, "mean"), (5, 3, 2)]
    views += [(int(rng.integers(24)), int(rng.integers(6)), int(rng.integers(H))) for _ in range(10)]
    views += [(int(rng.integers(24)), layer, "mean") for layer in ("mean", 2, 3, 4, 5, 5, 4, 3)]
    for step, layer, head in views:
        go(scope, f"a={runs[shape, 'rcr'].id}&f=0&s={step}&l={layer}&h={head}")
        drawn = scope.evaluate(LOOKS.format(".scope-pane-a"))
        expected = [look(trace, step, layer, head, piece) for piece in trace.meta.prompt_pieces]
        assert drawn == [f"scope-token scope-token-{one}" for one in expected], (step, layer, head)
        seen.update(one.split()[0] for one in expected)
    if shape == "several":  # the other has so many patches that few words are kept
        assert seen == {"kept", "in", "out", "evicted", "image", "fixed", "whole"}


def test_every_kept_entry_has_a_place(scope, runs):
    """Whatever a KV head selected is a patch of the map, or a cell that is drawn as kept."""
    trace = runs["several", "rcr"].trace()
    pieces = trace.meta.prompt_pieces
    for step in (3, 12, 20):
        go(scope, f"a={runs['several', 'rcr'].id}&f=0&s={step}&l=4")
        drawn = scope.evaluate(LOOKS.format(".scope-pane-a"))
        for entry in np.unique(trace.selection(step, 4)):
            at = next(i for i, p in enumerate(pieces) if p.start <= entry < p.start + p.count)
            if pieces[at].kind == "image":
                assert entry in trace.patch_position
            else:
                assert drawn[at].split()[1] in ("scope-token-kept", "scope-token-in")


def test_an_uncompressed_run_keeps_everything(scope, runs):
    go(scope, f"a={runs['tiled', 'full'].id}&f=0&s=6")
    looks = {one.split("-")[-1] for one in scope.evaluate(LOOKS.format(".scope-pane-a"))}
    assert looks == {"whole", "image", "fixed"}
    scope.locator(f"{STRIP} .scope-token").first.hover()
    assert scope.locator(TOLD).inner_text() == "“w0”, entry 0: kept, as nothing is evicted here"


def test_the_strip_is_one_stop_of_the_tab_key_and_its_arrows_move_along_it(scope, runs):
    trace, step = runs["several", "rcr"].trace(), 9
    go(scope, f"a={runs['several', 'rcr'].id}&f=0&s={step}&l=4")
    pieces, said = trace.meta.prompt_pieces, []
    scope.locator(STRIP).focus()
    for _ in pieces:
        said.append(scope.locator(TOLD).inner_text())
        active = scope.evaluate(
            f"document.getElementById(document.querySelector('{STRIP}').getAttribute('aria-activedescendant'))"
            ".getAttribute('aria-label')"
        )
        assert active == said[-1]
        scope.keyboard.press("ArrowRight")
    assert scope.evaluate("rcrScope.state.step") == step  # these arrows are the strip's
    for piece, text in zip(pieces, said, strict=True):
        assert text.endswith(ending(trace, step, 4, piece)), text
    scope.keyboard.press("Home")
    scope.keyboard.press("ArrowDown")
    assert scope.evaluate("rcrScope.state.layer") == 5  # this one is the Scope's
    for _ in range(4):
        scope.keyboard.press("ArrowRight")
    first = next(at for at, piece in enumerate(pieces) if piece.kind == "image")
    for _ in range(first + 2 - 4):
        scope.keyboard.press("ArrowRight")
    scope.keyboard.press("Enter")
    assert scope.evaluate("rcrScope.state.picture") == 2


def ending(trace, step, layer, piece) -> str:
    """The end of what is said of an entry, for one layer and all its KV heads."""
    if piece.kind == "image":
        return f", {piece.count} tokens"
    if piece.start >= trace.meta.prefix_length:
        return "in the window, always kept"
    state = look(trace, step, layer, "mean", piece).split()[0]
    if state in ("out", "evicted"):
        return {"out": "just out", "evicted": "evicted"}[state]
    tokens = np.arange(piece.start, piece.start + piece.count)
    count = int(np.isin(trace.selection(step, layer), tokens).any(1).sum())
    who = f"layer {layer}" if count == H else f"layer {layer} ({count} of {H} KV heads)"
    return f"{'just in, ' if state == 'in' else ''}kept in {who}"


def test_images_are_one_cell_each_and_the_window_is_marked(scope, runs):
    go(scope, f"a={runs['several', 'rcr'].id}&f=0&s=3")
    counts = np.bincount(SHAPES["several"].column("image"))
    shown = scope.locator(f"{STRIP} .scope-token-image").all_inner_texts()
    assert shown == [f"image {at + 1}, {count} tokens" for at, count in enumerate(counts)]
    assert scope.locator(f"{STRIP} .scope-prompt-window").count() == 1
    assert scope.locator(f"{STRIP} .scope-token-fixed").count() == WINDOW - IN_WINDOW
    assert scope.locator(f"{STRIP} .scope-token").count() == BEFORE - 1 + len(counts) + WINDOW - IN_WINDOW


@pytest.mark.parametrize("width", [1400, 420])
def test_the_strip_keeps_its_height_and_its_width(chromium, address, width):
    with watching(chromium, address) as watched:
        context = watched.context(viewport={"width": width, "height": 1000})
        page = opened(context, address, "a=5-ten-objects-rcr&b=5-ten-objects-bacon&f=0&s=1")
        sizes = set()
        for step in (1, 30, 90):
            go(page, f"a=5-ten-objects-rcr&b=5-ten-objects-bacon&f=0&s={step}")
            box = page.locator(".scope-pane-a .scope-prompt").bounding_box()
            sizes.add((round(box["width"]), round(box["height"])))
        ((wide, high),) = sizes
        assert high <= 80 and wide <= page.locator(".scope-pane-a").bounding_box()["width"] + 1
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_only_cells_that_changed_are_touched(scope):
    go(scope, f"a={SYNTHETIC[0]}&f=0&s=5&l=3")
    touched = scope.evaluate(
        """
        async () => {
          const seen = [];
          new MutationObserver((all) => seen.push(...all)).observe(
            document.querySelector(".scope-pane-a .scope-prompt-cells"),
            { attributes: true, childList: true, subtree: true },
          );
          const range = document.querySelector(".scope-range");
          range.value = 5;
          range.dispatchEvent(new Event("input", { bubbles: true }));
          await new Promise((done) => setTimeout(done, 100));
          return seen.length;
        }
        """
    )
    assert touched == 0
