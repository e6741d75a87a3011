"""Who sees which run, what a store keeps and for how long, and what it forgets."""

from __future__ import annotations

import threading
import time

import pytest

from rcr_core.captioning import Captioner
from rcr_core.errors import PromptError, ScopeError, StoreFullError, UnknownRunError
from rcr_core.runs import RunStore, StoreLimits
from tests.core.stores import ANNA, BEN, comes_to, ended, maker
from tests.core.trace_samples import small_meta, small_trace

BESIDE = 4096  # bytes that a run counts for beside its trace
SIZE = BESIDE + len(small_trace().meta.to_json()) + sum(a.nbytes for a in small_trace().arrays().values())
HOUR = 3600.0


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="module")
def captioner(load):
    return Captioner(load("bundled"))


def refuse():
    raise PromptError("too long", "write less")


def held(store, owner=ANNA):
    return [run.label for run in store.list(owner)]


# Who sees what


def test_a_file_is_a_finished_run_of_its_owner():
    store = RunStore()
    trace = small_trace()
    run = store.add(ANNA, trace, label="mine.rcr")
    assert store.get(run.id, ANNA) is run
    assert (run.kind, run.label, run.policy, run.status) == ("file", "mine.rcr", "rcr", "done")
    assert (run.steps, run.finished, run.place, run.error, run.rate) == (3, True, 0, None, 0.0)
    assert run.trace() is trace and run.bytes == SIZE and run.scene is None and run.truth() is None
    assert run.wait(1 << 30, 20) is True
    run.stop()
    assert run.status == "done"


def test_owners_see_their_own_runs_newest_first_and_then_the_examples():
    store = RunStore()
    for number in (1, 2):
        store.add("", small_trace(), label=f"example {number}", kind="example", public=True)
    for owner, label in ((ANNA, "a1"), (BEN, "b1"), (ANNA, "a2")):
        store.add(owner, small_trace(), label=label)
    assert held(store) == ["a2", "a1", "example 1", "example 2"]
    assert held(store, BEN) == ["b1", "example 1", "example 2"]
    assert held(store, "") == held(store, "somebody else") == ["example 1", "example 2"]


def test_ids_and_keys_are_all_different_and_fit_into_an_address():
    store = RunStore()
    runs = [store.add(ANNA, small_trace(), label="") for _ in range(200)]
    words = {run.id for run in runs} | {run.key for run in runs}
    assert len(words) == 400
    assert all(
        set(word) <= set(map(chr, range(128)))
        and word.replace("-", "_").isidentifier()
        or word.replace("-", "").replace("_", "").isalnum()
        for word in words
    )


def test_a_foreign_a_dropped_and_an_invented_id_give_the_same_error():
    store = RunStore()
    foreign, dropped = (store.add(owner, small_trace(), label="") for owner in (BEN, ANNA))
    store.drop(dropped.id, ANNA)
    words = set()
    for wrong in (foreign.id, dropped.id, "no-such-run1"):
        for ask in (store.get, store.drop):
            with pytest.raises(UnknownRunError) as caught:
                ask(wrong, ANNA)
            words.add((caught.value.message, caught.value.hint, str(caught.value)))
    assert len(words) == 1 and words.pop()[1]
    assert store.get(foreign.id, BEN) is foreign


def test_a_key_reads_one_run_and_changes_nothing():
    store = RunStore()
    one, other = (store.add(BEN, small_trace(), label="") for _ in range(2))
    assert store.get(one.id, ANNA, one.key) is store.get(one.id, key=one.key) is one
    for owner, key in ((ANNA, other.key), ("", ""), (one.key, ""), (ANNA, "ké"), ("ké", ""), (ANNA, BEN)):
        with pytest.raises(UnknownRunError):
            store.get(one.id, owner, key)
    for owner in (ANNA, one.key, ""):
        with pytest.raises(UnknownRunError):
            store.drop(one.id, owner)
    assert store.get(one.id, BEN) is one


def test_an_example_is_for_all_to_read_and_for_nobody_to_drop():
    store = RunStore()
    example = store.add("", small_trace(), label="", kind="example", public=True)
    assert store.get(example.id, ANNA) is store.get(example.id) is example
    for owner in (ANNA, ""):
        with pytest.raises(UnknownRunError):
            store.drop(example.id, owner)


# What is kept


def test_runs_that_nobody_uses_go_after_a_while(clock):
    store = RunStore(StoreLimits(ttl=6 * HOUR), clock)
    used, unused = (store.add(ANNA, small_trace(), label=label) for label in ("used", "unused"))
    store.add("", small_trace(), label="example", kind="example", public=True)
    clock.now = 6 * HOUR
    assert held(store) == ["unused", "used", "example"]
    store.get(used.id, ANNA)
    clock.now += 1
    assert held(store) == ["used", "example"]
    with pytest.raises(UnknownRunError):
        store.get(unused.id, ANNA)
    clock.now += 6 * HOUR
    assert held(store) == ["example"]
    assert store.metrics()["evicted"] == 2


def test_a_live_run_is_not_forgotten_however_long_it_takes(clock, captioner):
    store = RunStore(StoreLimits(ttl=HOUR, max_bytes=1), clock)
    gate = threading.Event()
    make = maker(captioner, max_new_tokens=2)

    def slow():
        gate.wait(30)
        return make()

    run = store.start(ANNA, slow, policy="full", label="live")
    comes_to(run, "loading")
    clock.now = 10 * HOUR
    assert held(store) == ["live"]
    gate.set()
    ended(run)
    store.close()
    assert held(store) == ["live"]
    clock.now += HOUR + 1
    assert held(store) == []


def test_the_run_used_least_lately_makes_room(clock):
    """Three fit. A fourth pushes out the second, because the first was looked at after it."""
    store = RunStore(StoreLimits(max_bytes=3 * SIZE), clock)
    runs = []
    for label in ("1", "2", "3"):
        clock.now += 1
        runs.append(store.add(ANNA, small_trace(), label=label))
    assert held(store) == ["3", "2", "1"] and store.metrics()["bytes"] == 3 * SIZE
    clock.now += 1
    store.get(runs[0].id, ANNA)
    clock.now += 1
    store.add(BEN, small_trace(), label="4")
    assert held(store) == ["3", "1"] and held(store, BEN) == ["4"]
    assert store.metrics()["bytes"] == 3 * SIZE
    store.add("", small_trace(), label="example", kind="example", public=True)
    assert held(store) == ["1", "example"] and held(store, BEN) == ["4", "example"]


def test_one_trace_beyond_the_cap_is_still_there_to_be_looked_at(clock):
    store = RunStore(StoreLimits(max_bytes=SIZE // 2), clock)
    for label in ("first", "second"):
        clock.now += 1
        store.add(ANNA, small_trace(), label=label)
        assert held(store) == [label]


def test_large_metadata_counts(clock):
    """The header of a file may hold megabytes beside arrays of a few hundred bytes."""
    store = RunStore(StoreLimits(max_bytes=3 << 20), clock)
    for label in ("1", "2", "3", "4"):
        clock.now += 1
        store.add(ANNA, small_trace(meta=small_meta(prompt="x" * (1 << 20))), label=label)
    assert held(store) == ["4", "3"]
    assert store.metrics()["bytes"] > 2 << 20


def test_of_one_owner_only_so_many_finished_runs_stay(clock):
    """Failed ones included; those used least lately go, and nobody else's."""
    store = RunStore(StoreLimits(finished_per_owner=3), clock)
    store.add("", small_trace(), label="example", kind="example", public=True)
    store.add(BEN, small_trace(), label="b")
    first = store.add(ANNA, small_trace(), label="1")
    for label in ("2", "3"):
        clock.now += 1
        store.add(ANNA, small_trace(), label=label)
    clock.now += 1
    store.get(first.id, ANNA)
    for label in ("failed", "failed too"):
        clock.now += 1
        run = ended(store.start(ANNA, refuse, policy="rcr", label=label))
        until = time.monotonic() + 10
        while store.metrics()["working"]:
            assert time.monotonic() < until
        assert run.bytes == BESIDE
    assert held(store) == ["failed too", "failed", "1", "example"]
    assert held(store, BEN) == ["b", "example"]
    store.close()


def test_numbers_for_an_operator(captioner):
    store = RunStore(StoreLimits(concurrent=1, max_bytes=1000 * SIZE))
    store.add(ANNA, small_trace(), label="")
    gate = threading.Event()
    make = maker(captioner, max_new_tokens=1)

    def slow():
        gate.wait(30)
        return make()

    runs = [store.start(ANNA, slow, policy="full") for _ in range(3)]
    comes_to(runs[0], "loading")
    assert store.metrics() == {
        "runs": 4,
        "queued": 2,
        "working": 1,
        "started": 3,
        "evicted": 0,
        "bytes": SIZE,
        "max_bytes": 1000 * SIZE,
        "steps_per_second": 0,
    }
    gate.set()
    for run in runs:
        ended(run)
    store.close()
    assert (store.metrics()["queued"], store.metrics()["working"]) == (0, 0)


def test_dropping_a_live_run_stops_it(captioner):
    store = RunStore()
    run = store.start(ANNA, maker(captioner), policy="full")
    assert run.wait(1, 30)
    store.drop(run.id, ANNA)
    assert held(store) == []
    assert ended(run).status == "stopped"
    store.close()


def test_an_error_of_the_store_is_one_for_people():
    for error in (UnknownRunError(), StoreFullError("full", "wait")):
        assert isinstance(error, ScopeError) and error.hint
