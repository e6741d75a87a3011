"""What each step of a trace changed in the selections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rcr_core.trace.records import Trace


@dataclass(frozen=True, eq=False)
class Exchange:
    """What the selections of one step changed against those that the layers had before.

    compared  bool [L]         the layer has a selection at this step, else nothing changed there
    entered   bool [L, H, Np]  prefix entries that were not selected before
    left      bool [L, H, Np]  prefix entries that are selected no more

    The first selection of a layer enters as a whole.
    """

    compared: np.ndarray
    entered: np.ndarray
    left: np.ndarray


def exchanges(trace: Trace) -> Iterator[Exchange]:
    """The exchange of every step, from the prefill on."""
    meta = trace.meta
    held = np.zeros((meta.layers, meta.kv_heads, meta.prefix_length), bool)
    before = np.full(meta.layers, -1)
    managed = np.array(meta.managed, bool)
    for row in trace.selected_row:
        compared = (row >= 0) & managed
        now = held.copy()
        for layer in np.flatnonzero(compared & (row != before)):
            now[layer] = False
            np.put_along_axis(now[layer], trace.selected[row[layer]].astype(np.int64), True, axis=1)
        yield Exchange(compared, now & ~held, held & ~now)
        held, before = now, row
