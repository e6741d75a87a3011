"""The rows of a study as they stood, and what was computed from them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rcr_core.findings import Row

Computed = TypeVar("Computed")


class Snapshot:
    """Rows that no longer change: what is computed from them is computed once, whoever asks meanwhile."""

    def __init__(self, rows: Sequence[Row]):
        self.rows = tuple(rows)
        self._lock = threading.RLock()  # a computation may use another
        self._computed: dict[str, Any] = {}

    def remember(self, name: str, make: Callable[[], Computed]) -> Computed:
        """What `make` gives, under a name."""
        with self._lock:
            if name not in self._computed:
                self._computed[name] = make()
            return self._computed[name]
