"""A masked decode step never waits for the host, and only the full-scan policies read the prefix."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rcr_core.engine import Engine, Recorder
from rcr_core.policies import POLICIES, make_policy
from rcr_core.settings import Settings
from tests.core.runs import FAMILIES, prompt_for

SYNCS = (
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "item",
    "unique",
    "is_nonzero",
    "equal",
    "_to_copy_cpu",
)


class OpNames(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__.split(".")[0])
        return func(*args, **(kwargs or {}))


def step_ops(loaded, policy):
    """Names of every operator of the third decode step."""
    engine = Engine(loaded.model)
    session = engine.start(prompt_for(loaded).inputs, policy, 8)
    for _ in range(2):
        engine.step(session, engine.choose(session))
    token = engine.choose(session)
    with OpNames() as ops:
        engine.step(session, token)
    return ops.names


@pytest.mark.parametrize("family", [*FAMILIES, "bundled"])
@pytest.mark.parametrize("observe", [False, True])
@pytest.mark.parametrize("update", ["layer", "step"])
def test_a_masked_step_has_no_sync(load, family, observe, update):
    loaded = load(family)
    settings = Settings(select=8, window=8, candidates=16, update=update, merge="masked")
    names = step_ops(loaded, make_policy("rcr", settings, observe=observe))
    assert len(names) > 100
    assert not [name for name in names if name in SYNCS]


@pytest.mark.parametrize("family", FAMILIES)
def test_recording_a_step_has_no_sync_but_its_one_copy(load, family):
    loaded = load(family)
    engine = Engine(loaded.model)
    prompt = prompt_for(loaded)
    settings = Settings(select=8, window=8, candidates=16)
    recorder = Recorder(prompt.geometry, prompt.length, engine.shape, 8, loaded.device)
    session = engine.start(prompt.inputs, make_policy("rcr", settings, observe=True), 4)
    recorder.record(session, engine.choose(session), str, 0.0)
    engine.step(session, engine.choose(session))
    token = engine.choose(session)
    with OpNames() as ops:
        recorder.record(session, token, str, 0.0)
    assert len(ops.names) > 20
    assert not [name for name in ops.names if name in SYNCS]


def test_the_spy_sees_the_sync_of_the_branching_path(load):
    loaded = load("qwen3_vl")
    settings = Settings(select=8, window=8, candidates=16, merge="branch")
    names = step_ops(loaded, make_policy("rcr", settings))
    assert names.count("_local_scalar_dense") == 4  # one a layer


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("full", "exact")])
@pytest.mark.parametrize("observe", [False, True])
def test_no_policy_but_the_scans_reads_the_full_prefix_in_a_step(load, name, observe):
    """Everything aside is poisoned but for what may be fetched: rows through `_rows`."""
    loaded = load("qwen3_vl")
    policy = make_policy(name, Settings(select=8, window=8, candidates=16), observe=observe)
    engine = Engine(loaded.model)
    inputs = prompt_for(loaded).inputs
    if policy.rehearses:
        engine.rehearse(inputs, policy, 4, frozenset())
    session = engine.start(inputs, policy, 8)
    largest = 0
    for store in session.stores:
        fetch = store._rows

        def counted(table, flat, fetch=fetch):
            nonlocal largest
            largest = max(largest, flat.numel())
            return fetch(table, flat)

        store._rows = counted
        store.prefix_k, store.prefix_v = Guard(store.prefix_k), Guard(store.prefix_v)
    engine.step(session, engine.choose(session))
    heads = engine.shape.kv_heads
    assert largest <= heads * 16
    assert session.logits.isfinite().all()


class Guard:
    """A prefix that may be asked for its shape and for rows, and for nothing else."""

    def __init__(self, tensor: torch.Tensor):
        self._tensor = tensor
        self.shape = tensor.shape

    def view(self, *shape):
        return self._tensor.view(*shape)
