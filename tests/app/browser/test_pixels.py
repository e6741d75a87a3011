"""The colours on the page stand for the recorded numbers, and its legend says which.

Expected colours come from Plotly's table of Viridis, expected places from the boxes of the page's elements.
"""

from __future__ import annotations

import numpy as np
import pytest
from plotly.colors import hex_to_rgb, sequential

from tests.app.browser import truths
from tests.app.browser.opening import columns, go, hold, opened, owners_context, watching
from tests.app.browser.shapes import GREY, SHAPES, L, N, made_trace

TABLE = np.array([hex_to_rgb(colour) for colour in sequential.Viridis], float)
PIXELS = """
([selector, points]) => {
  const canvas = document.querySelector(selector);
  const ratio = canvas.width / canvas.clientWidth;
  const context = canvas.getContext("2d");
  const at = (x, y) => context.getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1).data;
  return points.map(([x, y]) => [...at(x, y)]);
}
"""
BOX = """
(selector) => {
  const { width, height } = document.querySelector(selector).getBoundingClientRect();
  return [width, height];
}
"""
COLOUR = "(name) => getComputedStyle(document.querySelector('.scope')).getPropertyValue(name).trim()"


@pytest.fixture(scope="module")
def traces():
    return {"a": made_trace("wide", "full"), "b": made_trace("wide", "rcr")}


@pytest.fixture(scope="module")
def runs(store, traces):
    return {which: hold(store, trace).id for which, trace in traces.items()}


@pytest.fixture(scope="module")
def scope(chromium, address, runs):
    with watching(chromium, address) as watched:
        yield opened(owners_context(watched, address), address, f"a={runs['a']}&b={runs['b']}")


def viridis(share: np.ndarray) -> np.ndarray:
    """Colours of shares in [0, 1], f64 [n, 3]."""
    at = np.linspace(0, 1, len(TABLE))
    return np.stack([np.interp(share, at, TABLE[:, channel]) for channel in range(3)], -1)


def middles(shape: str, pane: list[float]) -> np.ndarray:
    """The middle of each patch in a pane that shows the whole picture, [P, 2]."""
    height, width = SHAPES[shape].sizes[0]
    fit = min(pane[0] / width, pane[1] / height)
    corner = (np.array(pane) - fit * np.array((width, height))) / 2
    box = SHAPES[shape].box
    return corner + fit * np.array((width, height)) * (box[:, :2] + box[:, 2:]) / 2


def ends(trace, layer) -> np.ndarray:
    return trace.map_mean_scale if layer == "mean" else trace.map_layer_scale[:, layer]


@pytest.mark.parametrize("opacity", [1, 0.4])
@pytest.mark.parametrize("layer", ["mean", 3])
@pytest.mark.parametrize("scale", ["run", "step"])
def test_patches_have_the_colours_of_their_values(scope, runs, traces, layer, scale, opacity):
    """The smaller a value, the more of the picture shows through; at the scale's end nothing does."""
    trace = traces["a"]
    step = int(ends(trace, layer).argmax())
    go(scope, f"a={runs['a']}&f=0&s={step}&l={layer}&k={scale}&o={opacity}")
    values = truths.value(trace, step, layer)
    end = values.max() if scale == "step" else truths.scale_end(trace, ends(trace, layer))
    share = np.clip(values.astype(float) / end, 0, 1)
    alpha = opacity * np.sqrt(share)[:, None]
    expected = alpha * viridis(share) + (1 - alpha) * GREY
    points = middles("wide", scope.evaluate(BOX, ".scope-pane-a .scope-pane-box"))
    shown = np.array(scope.evaluate(PIXELS, [".scope-pane-a canvas", points.tolist()]))[:, :3]
    assert np.abs(shown - expected).max() <= 3
    assert np.ptp(expected, axis=0).min() > 30  # there are colours to tell apart


def legend(scope) -> str:
    return scope.locator(".scope-legend").inner_text().replace("\n", " ")


@pytest.mark.parametrize("layer", ["mean", 4])
def test_the_legend_says_what_the_end_of_the_scale_stands_for(scope, runs, traces, layer):
    both = f"a={runs['a']}&b={runs['b']}"
    go(scope, f"{both}&f=0&s=8&l={layer}")
    end = max(truths.scale_end(trace, ends(trace, layer)) for trace in traces.values())
    assert f"≥ {truths.short(end)} " in legend(scope)
    go(scope, f"{both}&f=0&s=8&l={layer}&k=step")
    for which, trace in traces.items():
        assert f"{which.upper()} {truths.short(truths.value(trace, 8, layer).max())}" in legend(scope)


def test_the_legend_names_a_kv_head_only_where_the_colours_are_of_it(scope, runs):
    one = f"b={runs['b']}&f=0&s=8&h=2"
    for view, by_head in [("l=3", True), ("l=mean", False), ("l=3&m=missed", False), ("l=3&m=full", False)]:
        go(scope, f"{one}&{view}")
        assert ("KV head 2 (" in legend(scope)) == by_head, (view, legend(scope))


def test_raster_cells_show_refreshes_and_missing_decisions(scope, runs, traces):
    """Fire where a layer refreshed, another colour where it did not, and none of both without a decision."""
    trace = traces["b"]
    go(scope, f"b={runs['b']}&f=0&s=0")
    raster = ".timelines-raster:nth-child(3) canvas"
    _, height = scope.evaluate(BOX, raster)
    fire = hex_to_rgb(scope.evaluate(COLOUR, "--scope-fire"))
    x = columns(scope, raster, range(N))
    cells = [(step, layer) for step in range(1, N) for layer in range(L)]
    points = [(x[step], 2 + (layer + 0.4) * (height - 4) / L) for step, layer in cells]
    shown = np.array(scope.evaluate(PIXELS, [raster, points]))[:, :3]
    assert (shown == fire).all(-1).tolist() == [bool(trace.fire[cell]) for cell in cells]
