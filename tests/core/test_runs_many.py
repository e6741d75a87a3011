"""A store stands up to many people at once who start, watch, stop and drop runs as they like."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import numpy as np

from rcr_core.captioning import Captioner
from rcr_core.errors import StoreFullError, UnknownRunError
from rcr_core.runs import RunStore, StoreLimits
from tests.core.stores import ended, maker


class Person(threading.Thread):
    """Starts, reads, lists and drops runs of one owner until it is time; any exception is kept."""

    def __init__(self, store, make, owner, seed, until):
        super().__init__()
        self.store, self.make, self.owner, self.until = store, make, owner, until
        self.rng = np.random.default_rng(seed)
        self.failure = None
        self.refused = self.finished = 0

    def run(self):
        try:
            while time.monotonic() < self.until:
                self.start_one()
                self.store.metrics()
                for run in self.store.list(self.owner):
                    self.look_at(run)
        except Exception as error:  # handed to the test's own thread
            self.failure = error

    def start_one(self):
        try:
            run = self.store.start(self.owner, self.make, policy="rcr")
        except StoreFullError:
            self.refused += 1
            time.sleep(0.01)
            return
        run.wait(int(self.rng.integers(1, 6)), 0.05)
        (run.trace, run.truth, run.stop)[self.rng.integers(3)]()

    def look_at(self, run):
        assert run.owner == self.owner
        self.finished += run.finished
        with suppress(UnknownRunError):  # another thread of the same owner may have dropped it
            assert self.store.get(run.id, self.owner) is run
            if self.rng.integers(3) == 0:
                self.store.drop(run.id, self.owner)


def test_many_people_at_once(load):
    """Four owners with two threads each; afterwards nothing waits, nothing goes on, nothing failed."""
    store = RunStore(StoreLimits(max_bytes=1 << 20, queued=4, per_owner=3, concurrent=2))
    make = maker(Captioner(load("bundled")), "rcr", max_new_tokens=4)
    owners = [f"owner-{number}-0123456789" for number in range(4)]
    until = time.monotonic() + 4
    people = [Person(store, make, owner, seed, until) for seed, owner in enumerate(owners * 2)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert not [person.failure for person in people if person.failure]
    assert any(person.refused for person in people) and all(person.finished for person in people)
    for owner in owners:
        for run in store.list(owner):
            assert ended(run).error is None
    store.close()
    assert store.metrics()["started"] > 20
    assert (store.metrics()["queued"], store.metrics()["working"]) == (0, 0)
