"""The queue before the runs: places that move up, limits, stops, and errors that harm nobody else."""

from __future__ import annotations

import threading
import time

import pytest

from rcr_core.captioning import Captioner
from rcr_core.errors import PromptError, StoreFullError
from rcr_core.runs import RunStore, StoreLimits
from rcr_core.trace import read_trace, trace_bytes
from tests.core.stores import ANNA, BEN, Gate, comes_to, ended, logged, maker, started


@pytest.fixture(scope="module")
def captioner(load):
    return Captioner(load("bundled"))


@pytest.fixture
def one_at_a_time():
    store = RunStore(StoreLimits(concurrent=1, queued=3, per_owner=3))
    yield store
    store.close()


def test_places_in_the_queue(one_at_a_time, captioner):
    """Four runs on one place: the first goes on, the others wait at 1, 2, 3 and move up in order."""
    log, gate = [], Gate(maker(captioner, max_new_tokens=2))
    first = one_at_a_time.start(ANNA, gate, policy="full")
    comes_to(first, "loading")
    waiting = [
        one_at_a_time.start(
            BEN, maker(captioner, run_type=logged(log, name), max_new_tokens=2), policy="full"
        )
        for name in "abc"
    ]
    assert [run.place for run in (first, *waiting)] == [0, 1, 2, 3]
    assert {run.status for run in waiting} == {"queued"}
    assert all(run.trace() is None and run.truth() is None and not run.finished for run in waiting)
    with pytest.raises(StoreFullError, match="3 runs are waiting") as caught:
        started(one_at_a_time, captioner)
    assert caught.value.hint
    began = time.perf_counter()
    waiting[1].stop()
    assert waiting[1].status == "stopped" and time.perf_counter() - began < 1
    assert [run.place for run in waiting] == [1, 0, 2]
    gate.opened.set()
    assert [ended(run).status for run in (first, *waiting)] == ["done", "done", "stopped", "done"]
    assert log == [("a", 0), ("a", 1), ("c", 0), ("c", 1)]


def test_an_owner_may_have_so_many_runs(one_at_a_time, captioner):
    gate = Gate(maker(captioner, max_new_tokens=1))
    runs = [one_at_a_time.start(ANNA, gate, policy="full") for _ in range(3)]
    with pytest.raises(StoreFullError, match="3 of your runs") as caught:
        one_at_a_time.start(ANNA, gate, policy="full")
    assert "stop one" in caught.value.hint
    one_at_a_time.start(BEN, gate, policy="full").stop()
    runs[2].stop()
    one_at_a_time.start(ANNA, gate, policy="full")
    gate.opened.set()


def test_waiting_costs_no_processor_time(one_at_a_time, captioner):
    gate = Gate(maker(captioner, max_new_tokens=1))
    runs = [one_at_a_time.start(ANNA, gate, policy="full") for _ in range(3)]
    comes_to(runs[0], "loading")
    watchers = [threading.Thread(target=run.wait, args=(1, 0.5)) for run in runs for _ in range(4)]
    spent = time.process_time()
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join()
    spent = time.process_time() - spent
    gate.opened.set()
    assert spent < 0.1


def test_a_run_in_preparation_stops_at_once(one_at_a_time, captioner):
    """Its thread may be held up by a download; its place is free only when that comes back."""
    gate = Gate(maker(captioner))
    run = one_at_a_time.start(ANNA, gate, policy="full")
    comes_to(run, "loading")
    after = started(one_at_a_time, captioner, max_new_tokens=3)
    run.stop()
    assert run.status == "stopped" and run.trace() is None
    time.sleep(0.05)
    assert (after.status, after.place) == ("queued", 1)
    gate.opened.set()
    assert ended(after).status == "done"
    assert run.status == "stopped" and run.trace() is None and run.steps == 0


def test_waiting_ends_with_time(one_at_a_time, captioner):
    gate = Gate(maker(captioner, max_new_tokens=5))
    run = one_at_a_time.start(ANNA, gate, policy="full")
    comes_to(run, "loading")
    began = time.perf_counter()
    assert run.wait(1, 0.1) is False
    assert 0.09 < time.perf_counter() - began < 1
    gate.opened.set()


def test_waiting_ends_with_news(one_at_a_time, captioner):
    """News are a step, the end, and another status or place; the gates hold back all the others."""
    gates = [Gate(maker(captioner, max_new_tokens=5)) for _ in range(2)]
    first = one_at_a_time.start(ANNA, gates[0], policy="full")
    second, third, fourth = (one_at_a_time.start(BEN, gates[1], policy="full") for _ in range(3))
    comes_to(first, "loading")
    threading.Timer(0.05, third.stop).start()
    assert fourth.wait(1 << 30, 20) is True
    assert (fourth.status, fourth.place) == ("queued", 2)
    threading.Timer(0.05, gates[0].opened.set).start()
    assert second.wait(1 << 30, 20) is True
    assert (second.status, second.steps) == ("loading", 0)
    assert first.wait(5, 20) is True and first.steps == 5
    assert ended(first).wait(1 << 30, 20) is True
    gates[1].opened.set()


# Errors


def test_an_error_in_the_making_is_kept(one_at_a_time, captioner):
    def refuse():
        raise PromptError("the prompt is too long", "write less")

    run = ended(one_at_a_time.start(ANNA, refuse, policy="rcr"))
    assert (run.status, run.steps, run.trace()) == ("error", 0, None)
    assert (run.error.message, run.error.hint) == ("the prompt is too long", "write less")
    assert ended(started(one_at_a_time, captioner, max_new_tokens=2)).status == "done"


def test_an_unexpected_error_is_named_and_logged(one_at_a_time, captioner, caplog):
    def fail():
        raise ZeroDivisionError("secret detail")

    run = ended(one_at_a_time.start(ANNA, fail, policy="rcr"))
    assert run.status == "error"
    assert "ZeroDivisionError" in run.error.message and "secret" not in str(run.error)
    assert "secret detail" in caplog.text
    assert ended(started(one_at_a_time, captioner, max_new_tokens=2)).status == "done"


def test_an_error_while_decoding_keeps_what_was_recorded(one_at_a_time, captioner, caplog):
    """A replayed token that the model does not have breaks the fourth step."""
    run = ended(started(one_at_a_time, captioner, replay=(5, 6, 7, 1 << 30)))
    assert run.status == "error" and run.error.message
    trace = run.trace()
    assert trace.tokens.tolist() == [5, 6, 7] and run.steps == 3
    assert trace.meta.stop_reason == "error"
    assert read_trace(trace_bytes(trace)).steps == 3
