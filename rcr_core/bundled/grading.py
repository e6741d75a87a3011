"""Is a caption of a scene right? Objects are matched by the place that the caption names.

A caption that gives every object its four attributes at its place, names nothing else and leaves nothing out
is right; the grade says which objects and attributes are, and which characters of the text are wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rcr_core.bundled.scenes import ATTRIBUTES, COLUMNS, ROWS, Scene

_COLUMN = "|".join(sorted(COLUMNS, key=len, reverse=True))
_MENTION = re.compile(
    rf"(?:in the (?P<row>{'|'.join(ROWS)}) row, )?at the (?P<column>{_COLUMN}), there is an? "
    r"(?P<size>\w+) (?P<fill>\w+) (?P<colour>\w+) (?P<shape>\w+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Mention:
    """One object as a text describes it; `spans` holds the characters of each attribute's word."""

    row: str | None
    column: str
    words: dict[str, str]
    spans: dict[str, tuple[int, int]]
    span: tuple[int, int]


@dataclass(frozen=True)
class Grade:
    """How a text describes a scene.

    attributes: per object of the scene, which attributes are right, or None where the text does not name its
    place. invented: number of mentions at places that hold no object, or that were named before. wrong:
    character spans of the text that are wrong, in order. exact: the text is the scene's caption, word for
    word.
    """

    attributes: tuple[dict[str, bool] | None, ...]
    mentions: int
    invented: int
    wrong: tuple[tuple[int, int], ...]
    exact: bool

    @property
    def right(self) -> int:
        """Objects with all four attributes right."""
        return sum(found is not None and all(found.values()) for found in self.attributes)

    @property
    def total(self) -> int:
        return len(self.attributes)


def mentions(text: str) -> list[Mention]:
    """Every object that a text describes, in order; without a row it has the row of the one before it."""
    found, row = [], None
    for match in _MENTION.finditer(text):
        row = match["row"].lower() if match["row"] else row
        words = {name: match[name].lower() for name in ATTRIBUTES}
        spans = {name: match.span(name) for name in ATTRIBUTES}
        found.append(Mention(row, match["column"].lower(), words, spans, match.span()))
    return found


def grade(scene: Scene, text: str) -> Grade:
    """Grade a text against a scene."""
    places = {(thing.row, thing.column): index for index, thing in enumerate(scene.objects)}
    attributes: list[dict[str, bool] | None] = [None] * len(scene.objects)
    wrong, invented = [], 0
    said = mentions(text)
    for mention in said:
        index = places.get((mention.row, mention.column))
        if index is None or attributes[index] is not None:
            invented += 1
            wrong.append(mention.span)
            continue
        truth = scene.objects[index]
        attributes[index] = {name: mention.words[name] == getattr(truth, name) for name in ATTRIBUTES}
        wrong += [mention.spans[name] for name in ATTRIBUTES if not attributes[index][name]]
    exact = text.strip() == scene.caption
    return Grade(tuple(attributes), len(said), invented, tuple(wrong), exact)
