"""Whole runs of RCR: masked equals branch, its limits are other policies, runs leave each other alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.captioning import CaptionRequest
from rcr_core.engine import Engine
from rcr_core.models import prepare
from rcr_core.policies import POLICIES, make_policy
from rcr_core.settings import Settings
from rcr_core.trace import trace_bytes
from tests.core.runs import FAMILIES, TEXT, endless, generated, prompt_for, tokens_of

SMALL = Settings(select=8, window=8, candidates=16)


@pytest.fixture
def qwen(load):
    return load("qwen3_vl")


def decisions(engine, inputs, settings, count, policy="rcr"):
    """Tokens, and per step and layer (drift, tau, fire, selection)."""
    rows, session = [], None
    for session in engine.stream(inputs, make_policy(policy, settings, observe=True), count):
        views = session.policy.views
        rows.append([(v.drift.item(), v.tau.item(), bool(v.fire), v.selected) for v in views.values()])
    return session.tokens, rows


def assert_same_decisions(one, other):
    assert one[0] == other[0]
    for left, right in zip(one[1], other[1], strict=True):
        for a, b in zip(left, right, strict=True):
            assert a[:3] == b[:3]
            assert torch.equal(a[3], b[3])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("update", ["layer", "step"])
def test_masked_equals_branch_token_for_token(load, family, update):
    loaded = load(family)
    inputs = prompt_for(loaded).inputs
    engine = Engine(loaded.model)
    one, other = (
        decisions(engine, inputs, Settings(select=8, window=8, merge=merge, update=update, tau0=0.3), 60)
        for merge in ("masked", "branch")
    )
    fired = [fire for row in one[1][1:] for _, _, fire, _ in row]
    assert 0.05 < sum(fired) / len(fired) < 0.95, "both outcomes must occur"
    assert_same_decisions(one, other)


def test_masked_equals_branch_over_200_steps_on_the_bundled_captioner(load):
    loaded = load("bundled")
    inputs = prepare(loaded, [make_scene(9008, count=14).image()], CAPTION_PROMPT).inputs
    engine = Engine(loaded.model)
    one, other = (decisions(engine, inputs, Settings(merge=m), 200) for m in ("masked", "branch"))
    assert len(one[0]) == 200
    fired = [fire for row in one[1][1:] for _, _, fire, _ in row]
    assert 0.05 < sum(fired) / len(fired) < 0.95, "both outcomes must occur"
    assert_same_decisions(one, other)


@pytest.mark.parametrize("family", FAMILIES)
def test_with_full_rank_all_candidates_and_no_threshold_rcr_is_exact_reselection(load, family):
    loaded = load(family)
    inputs = prompt_for(loaded).inputs
    engine = Engine(loaded.model)
    limit = Settings(select=8, window=8, rank=16, candidates=4096, tau0=1e-6, gain=0.0)
    one = decisions(engine, inputs, limit, 40)
    other = decisions(engine, inputs, limit, 40, policy="exact")
    assert one[0] == other[0]
    for left, right in zip(one[1][1:], other[1][1:], strict=True):
        for a, b in zip(left, right, strict=True):
            assert a[0] == pytest.approx(b[0], abs=1e-5)
            assert torch.equal(a[3], b[3])


@pytest.mark.parametrize("family", FAMILIES)
def test_with_a_threshold_of_one_rcr_is_bacon(load, family):
    loaded = load(family)
    inputs = prompt_for(loaded).inputs
    engine = Engine(loaded.model)
    never = Settings(select=8, window=8, tau0=1.0, gain=0.0)
    tokens, rows = decisions(engine, inputs, never, 40)
    assert not any(fire for row in rows for _, _, fire, _ in row)
    assert tokens == tokens_of(engine, inputs, make_policy("bacon", never), 40)


@pytest.mark.parametrize("name", POLICIES)
def test_no_more_prefix_entries_than_slots_is_the_full_cache(qwen, name):
    prompt = prompt_for(qwen)
    engine = Engine(qwen.model)
    settings = Settings(select=prompt.length - 8, window=8)
    policy = make_policy(name, settings)
    if policy.rehearses:
        engine.rehearse(prompt.inputs, policy, 20, frozenset())
    assert tokens_of(engine, prompt.inputs, policy, 20) == generated(qwen.model, prompt.inputs, 20)[0]


def test_the_controller_identity_holds_over_a_run(qwen):
    _, rows = decisions(Engine(qwen.model), prompt_for(qwen).inputs, SMALL, 80)
    fired = [fire for row in rows[1:] for _, _, fire, _ in row]
    taus = [tau for row in rows[1:] for _, tau, _, _ in row]
    # taus[i] is the threshold before update i, so the last update is left out of the sum.
    total = sum(fire - SMALL.rho for fire in fired[:-1])
    expected = (torch.tensor(taus[-1], dtype=torch.float64) / SMALL.tau0).log() / SMALL.gain
    assert total == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"])
def test_two_interleaved_runs_keep_their_tokens(load, family):
    loaded = load(family)
    engine = Engine(loaded.model)
    prompts = [prompt_for(loaded), prepare(loaded, [], "What is in the picture?")]
    alone = [tokens_of(engine, p.inputs, make_policy("rcr", SMALL), 20) for p in prompts]
    streams = [engine.stream(p.inputs, make_policy("rcr", SMALL), 20) for p in prompts]
    together = list(zip(*streams, strict=True))[-1]
    assert [session.tokens for session in together] == alone
    assert alone[0] != alone[1]


def test_two_engines_on_one_model_in_two_threads_keep_their_tokens(load):
    """Positions of Qwen-VL live on the model, so all engines of a model must take turns."""
    loaded = load("qwen3_vl")
    prompts = [prompt_for(loaded), prepare(loaded, [], "What is in the picture?")]
    alone = [tokens_of(Engine(loaded.model), p.inputs, make_policy("rcr", SMALL), 30) for p in prompts]
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(tokens_of, Engine(loaded.model), p.inputs, make_policy("rcr", SMALL), 30)
            for p in prompts
        ]
        assert [job.result() for job in jobs] == alone


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_prompt_after_an_image_prompt_is_not_disturbed(load, family):
    text = "What is in the picture?"
    loaded = load(family)
    fresh = generated(loaded.model, prepare(loaded, [], text).inputs, 20)[0]
    engine = Engine(loaded.model)
    tokens_of(engine, prompt_for(loaded).inputs, make_policy("rcr", SMALL), 5)
    assert tokens_of(engine, prepare(loaded, [], text).inputs, make_policy("full", SMALL), 20) == fresh


def test_grad_mode_is_left_alone_between_steps(qwen):
    engine = Engine(qwen.model)
    for name in ("rcr", "infinigen"):
        for _ in engine.stream(prompt_for(qwen).inputs, make_policy(name, SMALL), 4):
            assert torch.is_grad_enabled()
    with torch.no_grad():
        for _ in engine.stream(prompt_for(qwen).inputs, make_policy("rcr", SMALL), 4):
            assert not torch.is_grad_enabled()


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("length", [1, 8, 16, 17, 40])
def test_prompts_of_one_window_and_window_plus_slots(qwen, name, length):
    """1, W, W + S tokens and more: short prompts keep everything, longer ones select."""
    ids = torch.arange(20, 20 + length)[None]
    engine = Engine(qwen.model)
    policy = make_policy(name, replace(SMALL, diagnostics=True), observe=True)
    if policy.rehearses:
        engine.rehearse({"input_ids": ids}, policy, 6, frozenset())
    tokens = tokens_of(engine, {"input_ids": ids}, policy, 6)
    assert len(tokens) == 6
    assert all(view.drift.isfinite() for view in policy.views.values())
    if length <= 16:
        assert tokens == generated(qwen.model, {"input_ids": ids}, 6)[0]


@pytest.mark.parametrize("count", [0, 1])
def test_no_or_one_new_token(qwen, count):
    run = endless(qwen).run(prompt_for(qwen), CaptionRequest(settings=SMALL, max_new_tokens=count))
    assert len(list(run)) == count
    trace = run.trace()
    assert trace.steps == count
    assert trace.refresh_rate == 0.0
    assert trace.meta.stop_reason in ("length", "stop token")
    assert trace_bytes(trace)


def test_stop_in_mid_run_leaves_a_valid_trace(qwen):
    run = endless(qwen).run(prompt_for(qwen), CaptionRequest(settings=SMALL, max_new_tokens=30))
    for record in run:
        if record.step == 6:
            run.stop()
    trace = run.trace()
    assert trace.steps == 7
    assert trace.meta.stop_reason == "stopped"


def test_a_prompt_of_text_only_has_a_trace_without_patches(qwen):
    run = endless(qwen).run(prepare(qwen, [], TEXT), CaptionRequest(settings=SMALL, max_new_tokens=4))
    list(run)
    assert run.trace().patch_position.shape == (0,)
