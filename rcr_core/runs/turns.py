"""Fair turns: the runs that decode go round one token each, so that two runs side by side advance in step."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


class Turns:
    """A ring of seats; only the seat in front may work, then it goes to the end.

    The others wait for a seat that is slow to take its turn: whoever has one must take turn after turn, or
    give the seat up.
    """

    def __init__(self):
        self._condition = threading.Condition()
        self._ring: deque[object] = deque()

    @contextmanager
    def seat(self) -> Iterator[Callable[[], AbstractContextManager[None]]]:
        """A seat at the end of the ring; what it gives waits for the turn, and holds it while open."""
        seat = object()
        with self._condition:
            self._ring.append(seat)
        try:
            yield lambda: self._turn(seat)
        finally:
            with self._condition:
                self._ring.remove(seat)
                self._condition.notify_all()

    @contextmanager
    def _turn(self, seat: object) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: self._ring[0] is seat)
        try:
            yield
        finally:
            with self._condition:
                self._ring.rotate(-1)
                self._condition.notify_all()
