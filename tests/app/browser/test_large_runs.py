"""Two runs of 2,000 steps x 36 layers x 2,880 visual tokens are scrubbed as fast, in as little memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rcr_core.trace import Trace, VisualGeometry, with_cells
from tests.app.browser import truths
from tests.app.browser.opening import OWNER, hold, opened, owners_context, watching
from tests.app.browser.synthetic import synthetic_trace
from tests.app.browser.test_scrub import JUMPS

N, L, H, S, ROWS, COLUMNS = 2000, 36, 8, 32, 45, 64
P, TEXT, WINDOW = ROWS * COLUMNS, 8, 32
NOTE = "maps of layers are means over neighbouring patches"


def large_trace(policy: str) -> Trace:
    """As a recorder leaves it: the maps of layers in cells of 2 x 2. Rows repeat, so that it is made fast."""
    rng = np.random.default_rng(sum(policy.encode()))
    small = synthetic_trace(policy)
    again = np.arange(N) % small.steps
    places = with_cells(_geometry(), 800)
    fire = (rng.random((N, L)) < (0.4 if policy == "rcr" else 0)).astype(np.uint8)
    fire[0] = 0
    row = np.where(fire, 0, -1)
    row[0] = 0
    row[row == 0] = np.arange((row == 0).sum())
    row = np.maximum.accumulate(row, axis=0).astype(np.int32)
    maps = rng.integers(0, 256, (50, L, places.cells), dtype=np.uint8)[np.arange(N) % 50]

    def by_layer(low: float, high: float, *width: int) -> np.ndarray:
        return rng.uniform(low, high, (N, L, *width)).astype(np.float32)

    meta = replace(
        small.meta,
        prompt_pieces=(),
        prompt_length=TEXT + P + WINDOW,
        prefix_length=TEXT + P,
        layers=L,
        kv_heads=H,
        managed=(True,) * L,
        image_size=((ROWS * 16, COLUMNS * 16),),
        token_text=tuple(small.meta.token_text[step] for step in again),
        timings={"prefill": 0.5, "steps": [0.02] * (N - 1)},
    )
    return Trace(
        meta=meta,
        **{name: getattr(small, name)[again] for name in ("tokens", "logprob", "top_ids", "top_logprob")},
        drift=by_layer(0, 0.3),
        tau=by_layer(0, 0.3),
        fire=fire,
        selected=rng.integers(0, TEXT + P, (row.max() + 1, H, S)).astype(np.uint16),
        selected_row=row,
        mass=by_layer(0, 0.25, 4),
        map_mean=rng.integers(0, 256, (N, P), dtype=np.uint8) * (rng.random((N, P), np.float32) < 0.3),
        map_mean_scale=rng.uniform(0, 0.1, N).astype(np.float32),
        map_layer=maps,
        map_layer_scale=by_layer(0.05, 0.1),
        missed_layer=maps[:, ::-1],
        missed_layer_scale=by_layer(0.02, 0.05),
        patch_box=places.box,
        patch_position=places.position,
        patch_image=places.image,
        patch_frame=places.frame,
        patch_level=places.level,
        patch_cell=places.cell,
        image=small.image,
    )


def _geometry() -> VisualGeometry:
    y, x = np.mgrid[:ROWS, :COLUMNS].reshape(2, -1)
    box = np.stack((x / COLUMNS, y / ROWS, (x + 1) / COLUMNS, (y + 1) / ROWS), -1).astype(np.float32)
    still = np.zeros(P, np.int32)
    position = np.arange(TEXT, TEXT + P, dtype=np.int32)
    return VisualGeometry(position, still, still, still, box, ((ROWS * 16, COLUMNS * 16),))


@pytest.fixture(scope="module")
def traces():
    return {which: large_trace(policy) for which, policy in (("a", "rcr"), ("b", "bacon"))}


@pytest.fixture(scope="module")
def scope(chromium, address, store, traces):
    """A page with both open at their last step."""
    runs = {which: hold(store, trace) for which, trace in traces.items()}
    pair = "&".join(f"{which}={run.id}" for which, run in runs.items())
    with watching(chromium, address) as watched:
        yield opened(owners_context(watched, address), address, f"{pair}&s={N - 1}&l=12&f=0")
    for run in runs.values():  # they are a third of what the server of these tests may hold
        store.drop(run.id, OWNER)


def test_a_map_of_a_layer_is_painted_by_patch_and_the_pane_says_how_fine_it_is(scope, traces):
    for which, trace in traces.items():
        by_patch = trace.by_patch(trace.map_layer[N - 1, 12])
        wanted = truths.dequantised(by_patch, trace.map_layer_scale[N - 1, 12])
        for patch in (0, 1, 63, 64, 65, P - 1):
            value = scope.evaluate("(of) => rcrScope.value(...of)", [which, N - 1, 12, patch])
            assert value == wanted[patch]
        assert wanted[0] == wanted[1] == wanted[64] == wanted[65]
    assert scope.get_by_text(NOTE).count() == 2


def test_a_jump_is_as_fast_as_in_a_small_run(scope):
    times = scope.evaluate(JUMPS, [60, N, 737])
    median, most = times[len(times) // 2], times[int(0.95 * len(times))]
    print(f"\nscrub p50 {median:.0f} ms (bar 33), p95 {most:.0f} ms, a page of layers fetched at each")
    assert median <= 66 and most <= 200


def test_the_page_holds_only_pages_around_where_it_was(scope):
    """The maps of all layers are 209 MB; 60 jumps have asked for most of them."""
    browser = scope.context.new_cdp_session(scope)
    browser.send("HeapProfiler.enable")
    browser.send("HeapProfiler.collectGarbage")
    usage = browser.send("Runtime.getHeapUsage")
    held = (usage["usedSize"] + usage["backingStorageSize"]) / 1e6
    print(f"\nheap {held:.0f} MB (bar 120)")
    assert held <= 120
