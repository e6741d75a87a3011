"""A policy that keeps everything equals `generate` bit for bit; one-shot equals a full cache under a mask."""

from __future__ import annotations

import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from rcr_core.compatibility import cache_name
from rcr_core.engine import Engine
from rcr_core.engine.attention import attend
from rcr_core.policies import make_policy
from rcr_core.settings import Settings
from tests.core.runs import FAMILIES, generated, prompt_for

STEPS = 40


def logits_and_tokens(engine, inputs, policy, count):
    rows, session = [], None
    for session in engine.stream(inputs, policy, count):
        rows.append(session.logits[0].clone())
    return session, torch.stack(rows)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", [*FAMILIES, "bundled"])
@pytest.mark.parametrize("policy", ["full", "rcr"])
def test_keeping_everything_equals_generate_bit_for_bit(load, family, dtype, policy):
    loaded = load(family, dtype)
    prompt = prompt_for(loaded)
    tokens, logits = generated(loaded.model, prompt.inputs, STEPS)
    # For rcr the budget is what keeps everything: as many slots as there are prefix entries.
    settings = Settings(select=prompt.length)
    engine = Engine(loaded.model)
    session, own = logits_and_tokens(
        engine, prompt.inputs, make_policy(policy, settings, observe=True), STEPS
    )
    assert session.tokens == tokens
    assert torch.equal(own, logits)
    assert len(set(tokens)) > 3, "the tiny model says one thing only, so equality proves little"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_still_generates_the_same_after_a_run(load, family):
    loaded = load(family)
    prompt = prompt_for(loaded)
    before = generated(loaded.model, prompt.inputs, 12)
    logits_and_tokens(
        Engine(loaded.model), prompt.inputs, make_policy("rcr", Settings(select=8, window=8)), 12
    )
    after = generated(loaded.model, prompt.inputs, 12)
    assert before[0] == after[0]
    assert torch.equal(before[1], after[1])


def test_a_repetition_penalty_is_applied_as_generate_does_when_asked_for(load):
    loaded = load("qwen2_vl")
    prompt = prompt_for(loaded)
    plain, asked = (
        loaded.model.generate(
            **prompt.inputs,
            attention_mask=torch.ones_like(prompt.inputs["input_ids"]),
            do_sample=False,
            repetition_penalty=penalty,
            max_new_tokens=STEPS,
            eos_token_id=None,
        )[0, prompt.length :].tolist()
        for penalty in (1.0, 1.3)
    )
    assert plain != asked
    *_, session = Engine(loaded.model).stream(
        prompt.inputs, make_policy("full", Settings()), STEPS, penalty=1.3
    )
    assert session.tokens == asked


@pytest.mark.parametrize("family", FAMILIES)
def test_the_vision_tower_keeps_its_attention(load, family):
    loaded = load(family)
    before = loaded.model.config.vision_config._attn_implementation
    Engine(loaded.model)
    assert loaded.model.config.vision_config._attn_implementation == before == "sdpa"
    assert loaded.model.config.get_text_config()._attn_implementation == "rcr"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("policy", ["bacon", "snapkv"])
def test_one_shot_equals_a_full_cache_under_a_per_head_mask(load, family, policy):
    """The independent path: stock cache and SDPA, evicted entries hidden by a mask per query head."""
    loaded = load(family)
    prompt = prompt_for(loaded)
    engine = Engine(loaded.model)
    settings = Settings(select=16, window=16)
    session, own = logits_and_tokens(engine, prompt.inputs, make_policy(policy, settings), STEPS)
    selections = {layer: store.selected for layer, store in enumerate(session.stores)}
    masked = masked_run(loaded.model, prompt, selections, settings.window, session.tokens)
    torch.testing.assert_close(own[1:], masked, atol=1e-5 * own.std().item(), rtol=0)


def masked_run(model, prompt, selections, window, tokens):
    """Logits [N - 1, V] of a stock decode that replays `tokens` under the mask."""
    prefix = prompt.length - window

    def reference(module, query, key, value, attention_mask, scaling=None, **kwargs):
        if query.shape[2] == 1:
            heads, length = key.shape[1:3]
            hidden = torch.zeros(heads, length, dtype=torch.bool)
            hidden[:, :prefix] = True
            hidden.scatter_(1, selections[module.layer_idx], False)
            per_query = hidden.repeat_interleave(query.shape[1] // heads, 0)
            attention_mask = torch.zeros(per_query.shape).masked_fill(per_query, float("-inf"))[None, :, None]
        return attend(module, query, key, value, attention_mask, scaling=scaling, **kwargs)

    AttentionInterface.register("masked_reference", reference)
    AttentionMaskInterface.register("masked_reference", sdpa_mask)
    part = next(
        name
        for name in model.config.sub_configs
        if getattr(model.config, name) is model.config.get_text_config()
    )
    model.set_attn_implementation({part: "masked_reference"})
    rows = []
    with torch.no_grad():
        out = model(**prompt.inputs, use_cache=True)
        kept = {cache_name(model): out[cache_name(model)]}
        for token in tokens[:-1]:
            out = model(input_ids=torch.tensor([[token]]), **kept, use_cache=True)
            rows.append(out.logits[0, -1].float())
    model.set_attn_implementation({part: "rcr"})
    return torch.stack(rows)
