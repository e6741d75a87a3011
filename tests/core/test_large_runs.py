"""A photo of 12 megapixels, 2,880 visual tokens, 2,000 new ones, 36 layers: the trace stays small enough."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from rcr_core.captioning import CaptionRequest
from rcr_core.engine import ModelShape, most_cells
from rcr_core.engine.maps import MAX_LAYER_MAP_BYTES
from rcr_core.models import prepare
from rcr_core.runs import StoreLimits
from rcr_core.settings import Settings
from rcr_core.trace import MAX_TRACE_BYTES, read_trace, trace_bytes, with_cells
from tests.core.runs import TEXT, endless, picture

LAYERS, STEPS = 36, 2000
MAPS = ("map_layer", "missed_layer", "map_full")


@pytest.fixture(scope="module")
def loaded(load):
    """A tiny model of 36 layers whose processor makes as many tokens of a photo as a real one."""
    tiny = load("qwen2_vl", num_hidden_layers=LAYERS, max_position_embeddings=8192)
    processor = deepcopy(tiny.processor)
    processor.image_processor.size["longest_edge"] = 45 * 64 * 16**2
    return replace(tiny, processor=processor)


@pytest.fixture(scope="module")
def prompt(loaded):
    return prepare(loaded, [picture(size=(3000, 4000))], TEXT, STEPS)


def first_steps(loaded, prompt, count: int, most: int, **settings):
    """The trace of the first steps of a run that may have `most`."""
    run = endless(loaded).run(prompt, CaptionRequest("rcr", Settings(**settings), max_new_tokens=most))
    for record in run:
        if record.step + 1 == count:
            run.stop()
    return run.trace()


@pytest.fixture(scope="module")
def fine(loaded, prompt):
    return first_steps(loaded, prompt, 3, 3, diagnostics=True)


@pytest.fixture(scope="module")
def coarse(loaded, prompt):
    return first_steps(loaded, prompt, 3, STEPS, diagnostics=True)


def test_maps_of_layers_are_coarser_in_a_run_that_may_become_long(fine, coarse):
    patches = len(fine.patch_position)
    assert 2800 < patches <= 2880
    assert fine.patch_cell is None and fine.map_layer.shape == (3, LAYERS, patches)
    cells = coarse.geometry.cells
    assert coarse.map_layer.shape == coarse.map_full.shape == (3, LAYERS, cells)
    assert len(MAPS) * LAYERS * STEPS * cells <= MAX_LAYER_MAP_BYTES < 4 * len(MAPS) * LAYERS * STEPS * cells
    assert not any("areas" in note for note in fine.meta.notes)
    assert f"in {cells} areas, means over some of the {patches:,} visual tokens" in coarse.meta.notes[-1]


def test_a_pixel_is_the_mean_of_the_patches_that_share_it(fine, coarse):
    """Held against the run with a pixel a patch; each of the two is rounded to 1/510 of its own scale."""
    for name in MAPS:
        whole, scale = getattr(fine, name) / 255, getattr(fine, f"{name}_scale")[..., None]
        wanted = np.stack(
            [
                (whole * scale)[..., coarse.patch_cell == cell].mean(-1)
                for cell in range(coarse.geometry.cells)
            ],
            axis=-1,
        )
        coarse_scale = getattr(coarse, f"{name}_scale")[..., None]
        off = np.abs(getattr(coarse, name) / 255 * coarse_scale - wanted)
        assert (off <= (scale + coarse_scale) / 510 + 1e-7).all(), name
        assert wanted.max() > 0, name


def test_all_else_is_recorded_as_finely_as_ever(fine, coarse):
    for name in (
        "tokens",
        "map_mean",
        "map_mean_scale",
        "selected",
        "selected_row",
        "mass",
        "drift",
        "missed",
    ):
        np.testing.assert_array_equal(getattr(coarse, name), getattr(fine, name), err_msg=name)


def test_it_is_saved_and_read_back(coarse):
    again = read_trace(trace_bytes(coarse))
    np.testing.assert_array_equal(again.patch_cell, coarse.patch_cell)
    np.testing.assert_array_equal(again.by_patch(again.map_layer), coarse.by_patch(coarse.map_layer))


def test_three_such_runs_stay_within_the_stores_cap_and_a_file_within_a_readers(prompt):
    """A, B and the reference, at the sizes of an 8B model; A refreshes in every layer of every step."""
    shape = ModelShape(layers=LAYERS, kv_heads=8, query_groups=4, head_dim=128)
    cells = with_cells(prompt.geometry, most_cells(shape, STEPS, diagnostics=False)).cells
    layer_steps = LAYERS * STEPS
    run = 2 * layer_steps * cells + STEPS * len(prompt.geometry.position) + 64 * layer_steps
    selections = layer_steps * 8 * 32 * 2
    assert 3 * run + selections < StoreLimits().max_bytes
    # At a pixel a patch one run alone would have taken four fifths of it.
    assert 2 * layer_steps * len(prompt.geometry.position) > 0.7 * StoreLimits().max_bytes
    longest = with_cells(prompt.geometry, most_cells(shape, 4096, diagnostics=True)).cells
    assert 3 * LAYERS * 4096 * longest + 3 * selections < MAX_TRACE_BYTES
