"""What a section of the bench hands over, and how it spends its time.

A section is a list of units of work. Each is begun only while the time that it will probably take is left,
and one that the memory of the machine cannot hold costs itself alone; both are told of.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from rcr_core.errors import MemoryLimitError
from rcr_core.out_of_memory import is_out_of_memory

LONGEST = 400  # characters of a reason
Result = TypeVar("Result")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Column:
    """A column of figures. unit: text, ms, us (both of seconds), bytes, bandwidth, ratio or number."""

    id: str
    head: str
    unit: str = "number"


@dataclass(frozen=True)
class Figures:
    """A table of a section. A row holds values by column id, in seconds and bytes; it may lack some.

    In the column "passed" it says whether what it tells of is as it must be.
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]
    note: str = ""


@dataclass
class Section:
    """left_out: what there was no time or memory for; failed: what went wrong.

    passed: nothing did, and no check was left out.
    """

    name: str
    figures: list[Figures] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    passed: bool = True
    seconds: float = 0.0


class Budget:
    """Seconds that may be spent, from now on."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        return self._end - self._clock()

    def share(self, part: float) -> Budget:
        """A budget of a part of what is left."""
        return Budget(max(self.left, 0.0) * part, self._clock)


class Attempts:
    """Runs the units of a section under its budget; `left_out` and `failed` say which have no result."""

    def __init__(self, budget: Budget, say: Say = lambda text: None):
        self.budget = budget
        self.left_out: list[str] = []
        self.failed: list[str] = []
        self.seconds = 0.0  # of the last unit that ended well
        self._say = say

    def run(self, what: str, work: Callable[[], Result], expected: float = 0.0) -> Result | None:
        """The result of a unit that will probably take `expected` seconds; None where it is left out."""
        if self.budget.left < max(expected, 0.0):
            self.left_out.append(f"{what}: no time left")
            return None
        self._say(what)
        begun = time.perf_counter()
        try:
            result = work()
        except Exception as error:  # what an unknown machine cannot do must not cost all other figures
            if isinstance(error, MemoryLimitError) or is_out_of_memory(error):
                self.left_out.append(f"{what}: no memory left")
            else:
                self.failed.append(f"{what}: {type(error).__name__}: {error}"[:LONGEST])
            result = None
            gc.collect()  # the error's frames hold tensors, in cycles
        else:
            self.seconds = time.perf_counter() - begun
        free()
        return result


def free() -> None:
    """Give a GPU back what the last unit held."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def wait(device: torch.device) -> None:
    """Until the device has done all that it was told to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
