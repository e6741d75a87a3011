"""What a record shows, held against plain float64 loops over the keys that the run really holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rcr_core.captioning import CaptionRequest
from rcr_core.engine import Engine, ModelShape, Recorder, TokenNames, head_maps_fit
from rcr_core.policies import make_policy
from rcr_core.settings import Settings
from tests.core.runs import endless, prompt_for

# At full rank the sketch is exact, so what the record estimates must equal what the loops compute.
EXACT = {"select": 8, "window": 8, "rank": 16, "candidates": 16, "tau0": 0.3}
CASES = {
    "bacon": Settings(**EXACT),
    "exact": Settings(**EXACT),
    "quest": Settings(**EXACT, page=4),
    "rcr": Settings(**EXACT),
    "full": Settings(**EXACT),
    "rcr, two layers skipped": Settings(**EXACT, skip_layers=2),
    "rcr, deferred": Settings(**EXACT, defer=True),
}


class Seen:
    """Queries of a step, float64 [H, G, D], and the selection that each layer attended with."""

    def __init__(self, policy):
        self.queries, self.before, self.policy, self.decode = {}, {}, policy, policy.decode
        policy.decode = self

    def __call__(self, layer, query, store, scale):
        heads = store.keys.shape[1]
        self.queries[layer] = (query.view(heads, -1, query.shape[-1]).double() * scale).numpy()
        return self.decode(layer, query, store, scale)


def softmax(values):
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def by_hand(query, store, prompt, positions):
    """(map on visual tokens, that of each KV head, missed on visual tokens, in all, masses), by loops."""
    keys = store.live_keys().double().numpy()
    prefix_keys = store.prefix_k.double().numpy()
    prefix = prefix_keys.shape[1]
    heads, groups, _ = query.shape
    per_head, missed = np.zeros((heads, prompt)), np.zeros(prompt)
    generated = 0.0
    for h in range(heads):
        kept = np.arange(prefix) if store.whole else store.selected[h].numpy()
        tail = keys[h, len(kept) :]
        for g in range(groups):
            live = softmax(np.concatenate([prefix_keys[h, kept], tail]) @ query[h, g])
            per_head[h, kept] += live[: len(kept)] / groups
            per_head[h, prefix:] += live[len(kept) : len(kept) + prompt - prefix] / groups
            generated += live[len(kept) + prompt - prefix :].sum() / (heads * groups)
            full = softmax(np.concatenate([prefix_keys[h], tail]) @ query[h, g])[:prefix]
            full[kept] = 0.0
            missed[:prefix] += full / (heads * groups)
    used = per_head.mean(0)
    visual = np.isin(np.arange(prompt), positions)
    inside = np.arange(prompt) < prefix
    masses = [used[inside & visual].sum(), used[inside & ~visual].sum(), used[~inside].sum(), generated]
    return used[positions], per_head[:, positions], missed[positions], missed.sum(), masses


@pytest.mark.parametrize("case", CASES)
def test_maps_and_masses_are_what_the_attention_was(load, case):
    loaded = load("qwen3_vl")
    prompt = prompt_for(loaded)
    engine = Engine(loaded.model)
    settings = CASES[case]
    policy = make_policy(case.split(",")[0], settings, observe=True)
    recorder = Recorder(prompt.geometry, prompt.length, engine.shape, settings.select, loaded.device)
    session = engine.start(prompt.inputs, policy, 12)
    seen = Seen(policy)
    recorder.record(session, engine.choose(session), str, 0.0)
    fired = []
    for _ in range(10):
        engine.step(session, engine.choose(session))
        record = recorder.record(session, engine.choose(session), str, 0.0)
        fired += record.fire.tolist()
        for layer, store in enumerate(session.stores):
            used, per_head, missed, missed_in_all, masses = by_hand(
                seen.queries[layer], store, prompt.length, prompt.geometry.position
            )
            half = 0.5 / 255 + 1e-4  # rounding to 8 bits
            shown = record.map_layer[layer] / 255 * record.map_layer_scale[layer]
            np.testing.assert_allclose(shown, used, atol=half * record.map_layer_scale[layer] + 1e-6)
            shown = record.missed_layer[layer] / 255 * record.missed_layer_scale[layer]
            np.testing.assert_allclose(shown, missed, atol=half * record.missed_layer_scale[layer] + 1e-6)
            assert record.missed[layer] == pytest.approx(missed_in_all, abs=1e-5)
            for head, expected in enumerate(per_head):
                scale = record.map_head_scale[layer, head]
                shown = record.map_head[layer, head] / 255 * scale
                np.testing.assert_allclose(shown, expected, atol=half * scale + 1e-6)
            np.testing.assert_allclose(record.mass[layer], masses, atol=1e-5)
            if not store.whole:
                assert np.array_equal(record.selected[layer], store.selected.numpy())
        mean = record.map_mean / 255 * record.map_mean_scale
        layers = record.map_layer / 255 * record.map_layer_scale[:, None]
        np.testing.assert_allclose(mean, layers.mean(0), atol=2 * record.map_layer_scale.max() / 255)
    if case == "rcr":
        assert any(fired)
        assert not all(fired)


def test_the_prefill_shows_the_attention_of_the_last_prompt_token(load):
    """Step 0 attends to the whole prompt whatever is selected for later."""
    loaded = load("qwen3_vl")
    prompt = prompt_for(loaded)
    engine = Engine(loaded.model)
    recorder = Recorder(prompt.geometry, prompt.length, engine.shape, 8, loaded.device)
    records = []
    for name in ("full", "rcr"):
        policy = make_policy(name, Settings(**EXACT), observe=True)
        session = engine.start(prompt.inputs, policy, 2)
        records.append(recorder.record(session, engine.choose(session), str, 0.0))
    assert np.array_equal(records[0].map_layer, records[1].map_layer)
    assert not records[1].missed_layer.any()
    assert not records[1].missed.any()
    loaded.model.set_attn_implementation({"text_config": "eager"})
    with torch.no_grad():
        out = loaded.model(**prompt.inputs, output_attentions=True)
    loaded.model.set_attn_implementation({"text_config": "rcr"})
    for layer, attention in enumerate(out.attentions):
        heads = attention[0, :, -1].double().numpy()[:, prompt.geometry.position]
        row = heads.mean(0)
        groups = heads.reshape(engine.shape.kv_heads, engine.shape.query_groups, -1).mean(1)
        for head, expected in enumerate(groups):
            scale = records[1].map_head_scale[layer, head]
            shown = records[1].map_head[layer, head] / 255 * scale
            np.testing.assert_allclose(shown, expected, atol=0.51 / 255 * scale + 1e-6)
        shown = records[1].map_layer[layer] / 255 * records[1].map_layer_scale[layer]
        np.testing.assert_allclose(shown, row, atol=0.51 / 255 * records[1].map_layer_scale[layer] + 1e-6)


def test_maps_per_head_are_left_out_of_runs_that_they_would_swell():
    """64 MiB is the most: 8 layers of 4 KV heads on 2,048 visual tokens fill it in 1,024 steps."""
    shape = ModelShape(layers=8, kv_heads=4, query_groups=2, head_dim=8)
    assert head_maps_fit(shape, patches=2048, steps=1024)
    assert not head_maps_fit(shape, patches=2048, steps=1025)


def test_a_recorder_without_heads_records_all_the_rest(load):
    loaded = load("qwen3_vl")
    prompt = prompt_for(loaded)
    engine = Engine(loaded.model)
    with_heads, without = (
        Recorder(prompt.geometry, prompt.length, engine.shape, 8, loaded.device, heads=heads)
        for heads in (True, False)
    )
    session = engine.start(prompt.inputs, make_policy("rcr", Settings(**EXACT), observe=True), 4)
    for _ in range(3):
        token = engine.choose(session)
        full, lean = with_heads.record(session, token, str, 0.0), without.record(session, token, str, 0.0)
        assert lean.map_head is lean.map_head_scale is None
        for name in ("map_mean", "map_layer", "map_layer_scale", "missed_layer", "missed_layer_scale"):
            assert np.array_equal(getattr(full, name), getattr(lean, name)), name
        engine.step(session, token)


def test_layers_that_are_passed_through_show_nothing_per_head(load):
    """The first two layers attend to everything, the others within a window of 16, and so to little of it."""
    window = {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 2}
    captioner = endless(load("qwen2_vl", **window))
    request = CaptionRequest("rcr", Settings(**EXACT), max_new_tokens=3)
    run = captioner.run(prompt_for(captioner.loaded), request)
    list(run)
    trace = run.trace()
    assert trace.meta.managed == (True, True, False, False)
    assert trace.map_head_scale[:, :2].all()
    assert not trace.map_head_scale[:, 2:].any() and not trace.map_head[:, 2:].any()


def test_the_likeliest_tokens_have_the_names_that_the_tokenizer_gives_them(load):
    captioner = endless(load("qwen2_vl"))
    loaded = captioner.loaded
    run = captioner.run(prompt_for(loaded), CaptionRequest("rcr", Settings(**EXACT), max_new_tokens=4))
    list(run)
    trace = run.trace()
    assert len(trace.meta.top_text) == 4
    for ids, names in zip(trace.top_ids, trace.meta.top_text, strict=True):
        assert list(names) == [loaded.tokenizer.decode([token])[:32] for token in ids.tolist()]


def test_names_of_special_and_of_long_tokens(load):
    class Backend:
        def decode(self, ids, skip_special_tokens):
            return " " * ids[0]

    class Long:
        backend_tokenizer = Backend()

    tokenizer = load("bundled").tokenizer
    names = TokenNames(tokenizer)
    assert names.of(tokenizer.convert_tokens_to_ids("<|im_end|>")) == "<|im_end|>"
    assert TokenNames(Long()).of(32) == " " * 32
    assert TokenNames(Long()).of(33) == " " * 31 + "…"
