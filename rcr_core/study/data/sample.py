"""One image and prompt of a study, what is known about the right answer, and sets of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

# For pictures that come without a prompt of their own: what the paper asks on long captions.
DEFAULT_PROMPT = "Describe this image in detail."
DEFAULT_TOKENS = 512


@dataclass(frozen=True)
class Sample:
    """One image and prompt.

    read: the bytes of the picture's file, read only when they are needed (raises `StudyError`); references:
    what people wrote of it; answers: right answers of a short question; scene: seed, grid and count of a
    bundled scene.
    """

    id: str
    prompt: str
    read: Callable[[], bytes]
    max_new_tokens: int
    references: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    scene: dict[str, int] | None = None


@dataclass(frozen=True)
class DataSet:
    """Samples under one name; ids are unique within it."""

    name: str
    samples: Sequence[Sample] = field(repr=False)


@dataclass(frozen=True)
class Source:
    """All that a data set holds: `make` gives the sample at an index, once it is chosen."""

    name: str
    count: int
    make: Callable[[int], Sample]


def numbered(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The names, with a number behind those that are taken already: the second "a" becomes "a (2)"."""
    used, seen, found = set(taken), Counter(), []
    for name in names:
        own = name
        while own in used:
            seen[name] += 1
            own = f"{name} ({seen[name] + 1})"
        used.add(own)
        found.append(own)
    return found
