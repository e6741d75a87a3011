"""Every family through the whole path: loaded, its prompt made, decoded by the engine, recorded and read."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rcr_core.captioning import CaptionRequest
from rcr_core.engine import Engine
from rcr_core.models import prepare
from rcr_core.policies import make_policy
from rcr_core.settings import Settings
from rcr_core.trace import read_trace, save_trace
from tests.core.runs import FAMILIES, TEXT, endless, generated, picture, prompt_for
from tests.core.test_equality import masked_run
from tests.core.tiny import ALL_FAMILIES

FAMILY = pytest.mark.parametrize("family", ALL_FAMILIES)
NEW = [family for family in ALL_FAMILIES if family not in FAMILIES]
ALL_LAYERS = (True, True, True, True)
# In turn a sliding window of 24, and everything.
MANAGED = dict.fromkeys(ALL_FAMILIES, ALL_LAYERS) | {"gemma3": (False, True, False, True)}
# Visual tokens of one picture of 96 x 128 pixels, patches of 8 pixels, tiles of 48, counted by hand.
ALONE = {
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "qwen3_vl"), 6 * 8),  # 2 x 2 patches a token
    "llava": 36,
    "llava_next": 36 + 10 * (12 + 1),  # 9 of the 12 rows hold picture, kept in pairs; a newline each
    "llava_onevision": 36 + 12 * (16 + 1),  # 2 x 3 tiles hold 12 x 18 tokens, the picture 12 x 16 of them
    **dict.fromkeys(("idefics3", "smolvlm"), (3 * 4 + 1) * 9),  # enlarged to 144 x 192, and the global view
    "internvl": (3 * 4 + 1) * 9,  # and the thumbnail
    "gemma3": 9,
    "paligemma": 36,
}
# LLaVA-OneVision cuts only the single picture into tiles.
IN_COMPANY = ALONE | {"llava_onevision": 36 + 1}


def pictures(count: int) -> list:
    return [picture(seed) for seed in range(count)]


@FAMILY
@pytest.mark.parametrize("count", [0, 1, 2])
def test_keeping_everything_equals_generate_bit_for_bit(family, count, load):
    if family == "paligemma" and not count:
        pytest.skip("PaliGemma always needs an image")
    assert_equals_generate(load(family), pictures(count))


def assert_equals_generate(loaded, images) -> None:
    prompt = prepare(loaded, images, TEXT)
    tokens, logits = generated(loaded.model, prompt.inputs, 20)
    rows, session = [], None
    for session in Engine(loaded.model).stream(prompt.inputs, make_policy("full", Settings()), 20):
        rows.append(session.logits[0].clone())
    assert session.tokens == tokens
    assert torch.equal(torch.stack(rows), logits)
    assert len(set(tokens)) > 3, "the tiny model says one thing only, so equality proves little"


@FAMILY
def test_the_layers_that_a_policy_manages(family, load):
    assert Engine(load(family).model).managed_layers(100) == MANAGED[family]


def test_a_sliding_window_that_never_binds_is_managed(load):
    """1,024 as in Gemma 3's checkpoints: shorter runs have every layer managed."""
    loaded = load("gemma3", sliding_window=1024)
    engine = Engine(loaded.model)
    assert engine.managed_layers(1023) == ALL_LAYERS
    assert engine.managed_layers(1024) == MANAGED["gemma3"]
    assert_equals_generate(loaded, pictures(2))


@FAMILY
@pytest.mark.parametrize("policy, count", [("bacon", 1), ("rcr", 2)])
def test_a_run_is_recorded_and_read_again(family, policy, count, load, tmp_path):
    captioner = endless(load(family))
    prompt = prepare(captioner.loaded, pictures(count), TEXT)
    request = CaptionRequest(policy, Settings(select=8, window=8, candidates=16), max_new_tokens=6)
    run = captioner.run(prompt, request)
    records = list(run)
    save_trace(run.trace(), tmp_path / "run.rcr")
    trace = read_trace(tmp_path / "run.rcr")
    meta = trace.meta
    assert (meta.family, meta.processor) == (family, type(captioner.loaded.processor).__name__)
    assert meta.managed == MANAGED[family] and meta.stop_reason == "length"
    assert trace.tokens.tolist() == [record.token for record in records] and len(records) == 6
    assert meta.image_size == ((96, 128),) * count
    assert np.array_equal(trace.geometry.position, prompt.geometry.position)
    if policy == "rcr":  # drift is estimated in the layers that are managed, and there only
        assert (trace.drift[1:] > 0).any(axis=0).tolist() == list(meta.managed)
    if family == "gemma3":
        assert any("2 of 4 layers" in note for note in meta.notes)


@FAMILY
@pytest.mark.parametrize("count, tokens", [(1, ALONE), (2, IN_COMPANY)])
def test_each_picture_has_its_tokens(family, count, tokens, load):
    prompt = prepare(load(family), pictures(count), TEXT)
    assert np.bincount(prompt.geometry.image).tolist() == [tokens[family]] * count
    assert len(prompt.pictures) == count


@pytest.mark.parametrize("family", [family for family in NEW if MANAGED[family] == ALL_LAYERS])
def test_one_shot_equals_a_full_cache_under_a_per_head_mask(family, load):
    loaded = load(family)
    prompt = prompt_for(loaded)
    settings = Settings(select=8, window=8)
    rows, session = [], None
    for session in Engine(loaded.model).stream(prompt.inputs, make_policy("bacon", settings), 10):
        rows.append(session.logits[0].clone())
    selections = {layer: store.selected for layer, store in enumerate(session.stores)}
    masked = masked_run(loaded.model, prompt, selections, settings.window, session.tokens)
    own = torch.stack(rows)
    torch.testing.assert_close(own[1:], masked, atol=1e-5 * own.std().item(), rtol=0)
