"""What a record shows, held against plain float64 loops over the keys that the run really holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rcr_core.engine import Engine, Recorder
from rcr_core.policies import make_policy
from rcr_core.settings import Settings
from tests.core.runs import prompt_for

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
    """(map on visual tokens, missed on visual tokens, masses) of one layer, by loops over heads."""
    keys = store.live_keys().double().numpy()
    prefix_keys = store.prefix_k.double().numpy()
    prefix = prefix_keys.shape[1]
    heads, groups, _ = query.shape
    used, missed = np.zeros(prompt), np.zeros(prompt)
    generated = 0.0
    for h in range(heads):
        kept = np.arange(prefix) if store.whole else store.selected[h].numpy()
        tail = keys[h, len(kept) :]
        for g in range(groups):
            live = softmax(np.concatenate([prefix_keys[h, kept], tail]) @ query[h, g])
            used[kept] += live[: len(kept)] / (heads * groups)
            used[prefix:] += live[len(kept) : len(kept) + prompt - prefix] / (heads * groups)
            generated += live[len(kept) + prompt - prefix :].sum() / (heads * groups)
            full = softmax(np.concatenate([prefix_keys[h], tail]) @ query[h, g])[:prefix]
            full[kept] = 0.0
            missed[:prefix] += full / (heads * groups)
    visual = np.isin(np.arange(prompt), positions)
    inside = np.arange(prompt) < prefix
    masses = [used[inside & visual].sum(), used[inside & ~visual].sum(), used[~inside].sum(), generated]
    return used[positions], missed[positions], masses


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
            used, missed, masses = by_hand(
                seen.queries[layer], store, prompt.length, prompt.geometry.position
            )
            half = 0.5 / 255 + 1e-4  # rounding to 8 bits
            shown = record.map_layer[layer] / 255 * record.map_layer_scale[layer]
            np.testing.assert_allclose(shown, used, atol=half * record.map_layer_scale[layer] + 1e-6)
            shown = record.missed_layer[layer] / 255 * record.missed_layer_scale[layer]
            np.testing.assert_allclose(shown, missed, atol=half * record.missed_layer_scale[layer] + 1e-6)
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
    loaded.model.set_attn_implementation({"text_config": "eager"})
    with torch.no_grad():
        out = loaded.model(**prompt.inputs, output_attentions=True)
    loaded.model.set_attn_implementation({"text_config": "rcr"})
    for layer, attention in enumerate(out.attentions):
        row = attention[0, :, -1].mean(0).double().numpy()[prompt.geometry.position]
        shown = records[1].map_layer[layer] / 255 * records[1].map_layer_scale[layer]
        np.testing.assert_allclose(shown, row, atol=0.51 / 255 * records[1].map_layer_scale[layer] + 1e-6)
