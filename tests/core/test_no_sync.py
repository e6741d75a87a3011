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
    *("_local_scalar_dense", "item", "is_nonzero", "nonzero", "masked_select", "_unique2", "equal"),
    "index[bool]",
)


class OpNames(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__.split(".")[0]
        if name.startswith("index") and any(_is_mask(part) for part in args[1:]):
            name = "index[bool]"  # a boolean index must know how many are true
        self.names.append(name)
        return func(*args, **(kwargs or {}))


def _is_mask(part) -> bool:
    parts = part if isinstance(part, (list, tuple)) else [part]
    return any(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in parts)


class HostCopies:
    """Counts calls that bring a tensor to the host; on the CPU they leave no operator behind."""

    def __init__(self, monkeypatch):
        self.count = 0
        for name in ("cpu", "numpy", "tolist", "item", "__int__", "__float__", "__bool__"):
            monkeypatch.setattr(torch.Tensor, name, self._counted(getattr(torch.Tensor, name), name))

    def _counted(self, method, name):
        def call(tensor, *args, **kwargs):
            self.count += name != "numpy"  # a view of what `cpu` brought
            return method(tensor, *args, **kwargs)

        return call


def test_the_spies_see_what_they_are_for(monkeypatch):
    values, mask = torch.arange(4.0), torch.tensor([True, False, True, False])
    for sync in (
        lambda: values[mask],
        lambda: values.nonzero(),
        lambda: values.unique(),
        lambda: values[0].item(),
    ):
        for mode in (torch.inference_mode, torch.no_grad):  # they see different operators
            with mode(), OpNames() as ops:
                sync()
            assert set(ops.names) & set(SYNCS), ops.names
    copies = HostCopies(monkeypatch)
    values.cpu(), values.tolist(), bool(mask[0]), int(values[0])
    assert copies.count >= 4


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
def test_a_masked_step_has_no_sync(load, family, observe, update, monkeypatch):
    loaded = load(family)
    settings = Settings(select=8, window=8, candidates=16, update=update, merge="masked")
    copies = HostCopies(monkeypatch)
    engine = Engine(loaded.model)
    session = engine.start(prompt_for(loaded).inputs, make_policy("rcr", settings, observe=observe), 8)
    copies.count = 0
    for _ in range(3):
        engine.step(session, engine.choose(session))
    assert copies.count == 0
    monkeypatch.undo()
    names = step_ops(loaded, make_policy("rcr", settings, observe=observe))
    assert len(names) > 100
    assert not [name for name in names if name in SYNCS]


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"])
def test_positions_of_a_step_are_made_on_the_device(load, family, monkeypatch):
    """The model itself would count them on the host and copy them, and a GPU would wait."""
    loaded = load(family)
    engine = Engine(loaded.model)
    session = engine.start(prompt_for(loaded).inputs, make_policy("rcr", Settings(select=8, window=8)), 4)
    assert session.rope_deltas is not None
    asked = []
    monkeypatch.setattr(loaded.model.model, "compute_3d_position_ids", lambda **kwargs: asked.append(kwargs))
    engine.step(session, engine.choose(session))
    assert not asked and session.logits.isfinite().all()


@pytest.mark.parametrize("family", FAMILIES)
def test_recording_a_step_has_no_sync_but_its_one_copy(load, family, monkeypatch):
    loaded = load(family)
    engine = Engine(loaded.model)
    prompt = prompt_for(loaded)
    settings = Settings(select=8, window=8, candidates=16)
    recorder = Recorder(prompt.geometry, prompt.length, engine.shape, 8, loaded.device)
    session = engine.start(prompt.inputs, make_policy("rcr", settings, observe=True), 4)
    copies = HostCopies(monkeypatch)
    for _ in range(2):  # the prefill, and a step
        token = engine.choose(session)
        copies.count = 0
        with OpNames() as ops:
            recorder.record(session, token, str, 0.0)
        assert len(ops.names) > 20
        assert not [name for name in ops.names if name in SYNCS]
        assert copies.count == 1
        engine.step(session, token)


def test_the_spy_sees_the_sync_of_the_branching_path(load):
    loaded = load("qwen3_vl")
    settings = Settings(select=8, window=8, candidates=16, merge="branch")
    names = step_ops(loaded, make_policy("rcr", settings))
    assert [name for name in names if name in SYNCS] == ["is_nonzero"] * 4  # one a layer


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("full", "exact")])
@pytest.mark.parametrize("observe", [False, True])
def test_no_policy_but_the_scans_reads_the_full_prefix_in_a_step(load, name, observe):
    """What stands aside answers to its shape only; everything else is fetched row by row, through `_rows`."""
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
    """A prefix that may be asked for its shape, and for nothing else."""

    def __init__(self, tensor: torch.Tensor):
        self.shape = tensor.shape
