"""Edits and forks: what-if runs change what they say they change, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rcr_core.captioning import CaptionRequest
from rcr_core.edits import Edit
from rcr_core.errors import EditError
from rcr_core.policies import POLICIES
from rcr_core.settings import Settings
from rcr_core.trace import trace_bytes
from tests.core.runs import endless, prompt_for

SMALL = Settings(select=8, window=8, tau0=0.3)
STEPS = 24


@pytest.fixture(scope="module")
def captioner(load):
    return endless(load("qwen3_vl"))


@pytest.fixture(scope="module")
def prompt(captioner):
    return prompt_for(captioner.loaded)


def traced(captioner, prompt, policy="rcr", settings=SMALL, edits=(), replay=()):
    request = CaptionRequest(policy, settings, tuple(edits), STEPS, tuple(replay))
    run = captioner.run(prompt, request)
    list(run)
    return run.trace()


def bytes_without_timings(trace):
    return trace_bytes(replace(trace, meta=replace(trace.meta, timings={"prefill": 0.0, "steps": []})))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_run_twice_gives_the_same_bytes_but_for_timings(captioner, prompt, policy):
    one, other = (traced(captioner, prompt, policy) for _ in range(2))
    assert one.steps == STEPS
    assert bytes_without_timings(one) == bytes_without_timings(other)


@pytest.mark.parametrize("step", [0, 1, 7, STEPS])
def test_a_fork_without_edits_reproduces_its_parents_bytes(captioner, prompt, step):
    parent = traced(captioner, prompt)
    fork = traced(captioner, prompt, replay=parent.tokens[:step].tolist())
    assert bytes_without_timings(fork) == bytes_without_timings(parent)


def test_replayed_tokens_are_followed_even_where_greedy_would_differ(captioner, prompt):
    parent = traced(captioner, prompt)
    other = [int(token) for token in parent.tokens[:6]]
    other[4] = int(parent.top_ids[4][1])
    fork = traced(captioner, prompt, replay=other)
    assert fork.tokens[:6].tolist() == other
    assert not np.array_equal(fork.tokens, parent.tokens)


def test_a_forced_refresh_shows_exactly_there(captioner, prompt):
    never = replace(SMALL, tau0=1.0, gain=0.0)
    plain = traced(captioner, prompt, settings=never)
    edited = traced(captioner, prompt, settings=never, edits=[Edit("refresh", step=9, layer=2)])
    assert plain.fire.sum() == 0
    assert np.argwhere(edited.fire).tolist() == [[9, 2]]
    assert not np.array_equal(edited.selection(9, 2), plain.selection(9, 2))
    assert np.array_equal(edited.selection(9, 1), plain.selection(9, 1))
    assert np.array_equal(edited.drift[:9], plain.drift[:9])


@pytest.mark.parametrize("policy", ["rcr", "threshold", "exact", "quest", "arkvale", "infinigen"])
def test_a_held_layer_keeps_its_selection_over_the_range(captioner, prompt, policy):
    edits = [Edit("hold", step=5, until=8, layer=1)]
    trace = traced(captioner, prompt, policy, edits=edits)
    assert not trace.fire[5:9, 1].any()
    for step in range(5, 9):
        assert np.array_equal(trace.selection(step, 1), trace.selection(4, 1))


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "full"])
def test_a_pinned_entry_stays_and_a_banned_one_is_gone_from_the_step_on(captioner, prompt, policy):
    plain = traced(captioner, prompt, policy)
    kept = int(plain.selection(0, 1)[0, 0])
    missing = next(i for i in range(plain.meta.prefix_length) if i not in plain.selection(0, 1) and i != kept)
    edits = [Edit("ban", step=6, layer=1, index=kept), Edit("pin", step=6, layer=1, index=missing)]
    trace = traced(captioner, prompt, policy, edits=edits)
    for step in range(6):
        assert np.array_equal(trace.selection(step, 1), plain.selection(step, 1))
    for step in range(6, STEPS):
        for head in range(trace.meta.kv_heads):
            assert missing in trace.selection(step, 1)[head]
            assert kept not in trace.selection(step, 1)[head]


def test_tau_and_rho_change_from_their_step_on(captioner, prompt):
    edits = [Edit("tau", step=5, value=0.9), Edit("rho", step=10, value=1.0)]
    trace = traced(captioner, prompt, edits=edits)
    plain = traced(captioner, prompt)
    assert np.array_equal(trace.tau[:5], plain.tau[:5])
    assert trace.tau[5, 0] == pytest.approx(0.9)
    # With rho = 1 tau can only fall or stay, from the first update of step 10 on.
    later = trace.tau[10:].ravel()
    assert (np.diff(later) <= 1e-7).all()
    assert later[-1] < later[0]


def test_edits_that_a_policy_cannot_follow_are_refused(captioner, prompt):
    with pytest.raises(EditError, match="BACON cannot follow the edit refresh"):
        traced(captioner, prompt, "bacon", edits=[Edit("refresh", step=3)])
    with pytest.raises(EditError, match="Fixed threshold cannot follow the edit rho"):
        traced(captioner, prompt, "threshold", edits=[Edit("rho", step=3, value=0.1)])
    with pytest.raises(EditError, match="Uncompressed cannot follow the edit ban"):
        traced(captioner, prompt, "full", edits=[Edit("ban", step=3, index=1)])
    with pytest.raises(EditError, match="step 400 is beyond the 24 new tokens"):
        traced(captioner, prompt, edits=[Edit("hold", step=400)])
    with pytest.raises(EditError, match="cannot follow the edit tau"):
        traced(captioner, prompt, "exact", edits=[Edit("tau", step=3, value=0.1)])
    with pytest.raises(EditError, match="index must be in"):
        traced(captioner, prompt, edits=[Edit("pin", step=3, index=100_000)])
    with pytest.raises(EditError, match="layer must be in"):
        traced(captioner, prompt, edits=[Edit("hold", step=3, layer=99)])
