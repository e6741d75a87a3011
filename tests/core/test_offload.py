"""An offloaded prefix decodes the same, leaves the device, and is read as often as is said."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from rcr_core.cache import KeysAtHand, OffloadedStore
from rcr_core.cache.offload import HostRows
from rcr_core.captioning import CaptionRequest
from rcr_core.cost import cost, device_vectors
from rcr_core.engine import Engine
from rcr_core.policies import POLICIES, make_policy
from rcr_core.settings import Settings
from rcr_core.trace import exchanges
from tests.core.references import Case
from tests.core.runs import FAMILIES, endless, prompt_for
from tests.core.test_no_sync import SYNCS, step_ops

STEPS = 24
SMALL = {"select": 8, "window": 8, "candidates": 16, "rho": 0.5, "tau0": 0.2, "page": 4}
SELECTING = [name for name in POLICIES if name not in ("full", "oracle")]


def run(load, family, policy, offload, **settings):
    """The trace of a run on a tiny model, and the logits of every step."""
    loaded = load(family)
    captioner = endless(loaded)
    request = CaptionRequest(
        policy, Settings(**{**SMALL, "offload": offload, **settings}), max_new_tokens=STEPS
    )
    made = captioner.run(prompt_for(loaded), request)
    assert len(list(made)) == STEPS
    return made.trace()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("policy", SELECTING)
@pytest.mark.parametrize("offload", ["masked", "conditional"])
def test_offloading_decodes_the_same(load, family, policy, offload):
    expected, found = (run(load, family, policy, where) for where in ("none", offload))
    for name in ("tokens", "logprob", "drift", "tau", "fire", "selected", "selected_row", "mass"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert expected.asked is None and found.asked is not None


@pytest.mark.parametrize(
    "changes", [{"defer": True}, {"update": "step"}, {"gqa": "max", "centre": True}, {"diagnostics": True}]
)
@pytest.mark.parametrize("offload", ["masked", "conditional"])
def test_so_it_does_under_other_settings(load, changes, offload):
    expected, found = (run(load, "qwen3_vl", "rcr", where, **changes) for where in ("none", offload))
    assert np.array_equal(found.tokens, expected.tokens)
    assert np.array_equal(found.logprob, expected.logprob)
    assert np.array_equal(found.drift, expected.drift)


@pytest.mark.parametrize("policy", SELECTING)
def test_reads_that_are_asked_for_are_those_of_the_formula(load, policy):
    """Reads conditioned on the trigger: the formula at the realised rate, to the vector."""
    trace = run(load, "qwen2_vl", policy, "conditional")
    meta, settings = trace.meta, Settings(**SMALL)
    spent = cost(policy, settings, meta.prefix_length, meta.head_dim, trace.refresh_rate)
    np.testing.assert_allclose(trace.reads(trace.asked), spent.reads, rtol=1e-12)
    assert (trace.fetched <= trace.asked).all() and not trace.asked[0].any()
    if spent.reads and policy != "exact":
        assert trace.reads(trace.fetched) < spent.reads


@pytest.mark.parametrize("policy", ["rcr", "threshold"])
def test_masked_reads_in_every_layer_whatever_fires(load, policy):
    trace = run(load, "qwen2_vl", policy, "masked")
    assert trace.refresh_rate < 1
    heads = trace.meta.kv_heads
    assert (trace.asked[1:] == heads * (SMALL["candidates"] + SMALL["select"])).all()
    assert np.array_equal(trace.asked, trace.fetched)
    assert any("not reads" in note for note in trace.meta.notes)


@pytest.mark.parametrize(
    "policy, offload, words",
    [
        ("full", "conditional", None),
        ("bacon", "conditional", "reads nothing after the prefill"),
        ("snapkv", "masked", "reads nothing after the prefill"),
        ("quest", "masked", "in every layer"),
        ("rcr", "conditional", "waits for the host"),
    ],
)
def test_a_trace_notes_what_is_true_of_its_policy(policy, offload, words, load):
    notes = [note for note in run(load, "qwen2_vl", policy, offload).meta.notes if "host" in note]
    assert len(notes) == (words is not None)
    assert all(words in note for note in notes)


def test_a_conditional_step_of_pages_waits_once_a_layer(load):
    names = step_ops(load("qwen3_vl"), make_policy("quest", Settings(**SMALL, offload="conditional")))
    assert [name for name in names if name in SYNCS] == ["nonzero"] * 4


def test_conditional_reads_nothing_where_nothing_fires(load):
    trace = run(load, "qwen2_vl", "rcr", "conditional")
    quiet = trace.fire[1:] == 0
    assert quiet.any() and not trace.asked[1:][quiet].any() and not trace.fetched[1:][quiet].any()


@pytest.mark.parametrize("policy", ["quest", "arkvale", "infinigen"])
def test_what_is_fetched_is_what_was_not_kept(load, policy):
    """A key and a value of every entry that came in, counted from the recorded selections."""
    trace = run(load, "qwen3_vl", policy, "conditional")
    for step, exchange in enumerate(exchanges(trace)):
        if step:
            assert np.array_equal(trace.fetched[step], 2 * exchange.entered.sum(axis=(1, 2))), step


def test_a_refresh_fetches_new_candidates_keys_and_new_entries_values(load, monkeypatch):
    """Every row that leaves the host is noted; a layer's are told apart by its own tables."""
    read = {}
    plain = HostRows.read

    def noted(rows, flat):
        read[id(rows)] = read.get(id(rows), 0) + len(flat)
        return plain(rows, flat)

    monkeypatch.setattr(HostRows, "read", noted)
    loaded = load("qwen2_vl")
    engine = Engine(loaded.model)
    policy = make_policy("rcr", Settings(**SMALL, offload="conditional"), observe=True)
    fetched = 0
    for session in engine.stream(prompt_for(loaded).inputs, policy, STEPS):
        stores = session.stores
        fetched += sum(store.fetched for store in stores)
    keys = sum(read.get(id(store._key_rows), 0) for store in stores)
    values = sum(read.get(id(store._value_rows), 0) for store in stores)
    assert keys + values == fetched
    assert values < keys  # 8 of 16 candidates, fewer of them new


@pytest.mark.parametrize("policy", ["bacon", "rcr", "threshold", "quest", "infinigen"])
def test_a_masked_step_has_no_sync(load, policy):
    names = step_ops(load("qwen3_vl"), make_policy(policy, Settings(**SMALL, offload="masked"), observe=True))
    assert not [name for name in names if name in SYNCS]


def test_a_conditional_step_waits_once_a_layer_and_twice_more_where_it_reads(load):
    settings = Settings(**{**SMALL, "tau0": 1.0, "gain": 0.0}, offload="conditional")
    names = step_ops(load("qwen3_vl"), make_policy("rcr", settings))
    assert [name for name in names if name in SYNCS] == ["is_nonzero"] * 4
    settings = Settings(**{**SMALL, "tau0": 1e-6, "gain": 0.0}, offload="conditional")
    names = step_ops(load("qwen3_vl"), make_policy("rcr", settings))
    assert [name for name in names if name in SYNCS] == ["is_nonzero", "nonzero", "nonzero"] * 4


# ---- memory


@pytest.mark.parametrize("policy", ["bacon", "rcr", "quest"])
def test_the_device_keeps_nothing_as_long_as_the_prefix_but_what_decides(load, policy):
    loaded = load("qwen2_vl")
    prompt = prompt_for(loaded)
    prefix = prompt.length - SMALL["window"]
    engine = Engine(loaded.model)
    held = {}
    for offload in ("none", "conditional"):
        session = engine.start(prompt.inputs, make_policy(policy, Settings(**SMALL, offload=offload)), 4)
        gc.collect()
        held[offload] = [
            tensor
            for store in session.stores
            for tensor in vars(store).values()
            if isinstance(tensor, torch.Tensor) and prefix in tensor.shape
        ]
        if offload == "conditional":
            own = {id(rows.host) for store in session.stores for rows in (store._key_rows, store._value_rows)}
            assert {id(tensor) for tensor in held[offload]} == own  # in host memory, on a GPU pinned
    assert held["none"]


def test_bytes_on_the_device_are_those_of_the_formula(load):
    loaded = load("qwen2_vl")
    prompt = prompt_for(loaded)
    engine = Engine(loaded.model)
    shape, prefix = engine.shape, prompt.length - SMALL["window"]
    for name in ("bacon", "rcr"):
        for offload in ("none", "masked"):
            settings = Settings(**SMALL, offload=offload)
            policy = make_policy(name, settings)
            *_, session = engine.stream(prompt.inputs, policy, 5)
            # 5 tokens were chosen, of which 4 were fed; the room of the last is there as well.
            vectors = device_vectors(name, settings, prefix, shape.head_dim, generated=5)
            basis = sum(sketch.basis.nbytes for sketch in policy.sketch.values())  # the formula leaves it out
            held = sum(store.held_bytes for store in session.stores) + policy.decision_bytes - basis
            assert held == vectors * shape.head_dim * 4 * shape.kv_heads * shape.layers, (name, offload)


def test_the_prefill_holds_one_layers_prompt_at_a_time(load, monkeypatch):
    loaded = load("qwen2_vl")
    prompt = prompt_for(loaded)
    engine = Engine(loaded.model)
    held = []
    finish = OffloadedStore._finish

    def noted(store):
        held.append(sum(one.held_bytes for one in stores))
        finish(store)

    stores = []
    create = OffloadedStore.__init__
    monkeypatch.setattr(
        OffloadedStore,
        "__init__",
        lambda self, *args, **kw: (create(self, *args, **kw), stores.append(self))[0],
    )
    monkeypatch.setattr(OffloadedStore, "_finish", noted)
    engine.start(prompt.inputs, make_policy("rcr", Settings(**SMALL, offload="masked")), 4)
    shape = engine.shape
    whole = 2 * prompt.length * shape.head_dim * 4 * shape.kv_heads
    slots = 2 * (SMALL["select"] + SMALL["window"] + 4) * shape.head_dim * 4 * shape.kv_heads
    assert held == [whole + layer * slots for layer in range(shape.layers)]


def test_a_layer_that_keeps_its_prefix_keeps_it_on_the_device(load):
    loaded = load("qwen2_vl")
    settings = Settings(**SMALL, skip_layers=2, offload="conditional")
    session = Engine(loaded.model).start(prompt_for(loaded).inputs, make_policy("rcr", settings), 4)
    assert [store.aside_bytes > 0 for store in session.stores] == [False, False, True, True]
    assert session.stores[0].held_bytes > session.stores[2].held_bytes


# ---- parts


def test_rows_are_read_by_head_and_index_from_any_layout():
    prompt = torch.randn(1, 10, 3, 4).transpose(1, 2)  # values come from a model in this layout
    rows = HostRows(prompt[0, :, :7])
    flat = torch.tensor([0, 13, 20, 6])
    expected = torch.stack([prompt[0, 0, 0], prompt[0, 1, 6], prompt[0, 2, 6], prompt[0, 0, 6]])
    assert torch.equal(rows.read(flat), expected)
    rows._mapped = None  # a device that cannot read host memory itself
    assert torch.equal(rows.read(flat), expected)


def test_a_write_takes_keys_at_hand_and_reads_what_is_new():
    case = Case.random(length=20)
    store = OffloadedStore(4, delta=True)
    case.fill(store)
    store.compact(torch.tensor([[0, 3, 13], [1, 2, 7]]), 6)
    candidates = torch.tensor([[9, 3, 0, 5], [2, 8, 1, 4]])
    keys = store.candidate_keys(candidates)
    assert (store.asked, store.fetched) == (8, 4)  # 9 and 5, 8 and 4 are new
    np.testing.assert_array_equal(keys.numpy(), case.keys[np.arange(2)[:, None], candidates.numpy()])
    chosen = torch.tensor([[3, 9, 13], [1, 2, 8]])
    store.write(chosen, KeysAtHand(keys, candidates))
    assert (store.asked, store.fetched) == (14, 6)  # two new values
    for array, slots in ((case.keys, store.live_keys()), (case.values, store.live_values())):
        np.testing.assert_array_equal(slots[:, :3].numpy(), array[np.arange(2)[:, None], chosen.numpy()])
    store.write(torch.tensor([[3, 10, 13], [1, 2, 8]]))  # nothing at hand: a key and a value
    assert (store.asked, store.fetched) == (26, 8)
    np.testing.assert_array_equal(store.live_keys()[0, 1].numpy(), case.keys[0, 10])
    case.feed(store, 0)
    assert (store.asked, store.fetched) == (0, 0)  # counted anew in every step
