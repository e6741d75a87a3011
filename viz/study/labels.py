"""Where labels stand beside their marks, so that no label covers another one or a mark.

Everything is in pixels of the narrowest plot that a figure is drawn at. Heights are fixed and a wider plot
only moves marks apart, so that what does not overlap there overlaps nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

LINE = 15  # pixels from one line of text to the next
_LETTER = 6.6  # pixels, of text of 12 px
_MARK = 8  # half a mark and a bit of air
_APART = 4  # pixels
_FAR = 8  # lines up or down that a label may stand from its mark


@dataclass(frozen=True)
class Place:
    """Where a label begins (`side` +1: right of the mark) or ends (-1: left of it), `up` pixels higher."""

    side: int
    up: float


@dataclass(frozen=True)
class Box:
    left: float
    low: float
    right: float
    high: float

    @classmethod
    def above(cls, x: float, y: float, text: str) -> Box:
        """A line of text that stands on (x, y), its middle at x."""
        half = _LETTER * len(text) / 2
        return cls(x - half, y, x + half, y + LINE)

    def overlap(self, other: Box) -> float:
        """Pixels that two boxes share."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.high, other.high) - max(self.low, other.low)
        return max(wide, 0) * max(high, 0)


def placed(
    marks: Sequence[tuple[float, float, str]],
    width: float,
    lines: Sequence[Sequence[tuple[float, float]]] = (),
    boxes: Sequence[Box] = (),
    height: float = math.inf,
) -> list[Place]:
    """A place for the label of each mark (x, y, text), the nearest that is free; the first choose first.

    A label keeps off `boxes` and `lines` too, each a path of (x, y), as far as the marks leave it room, and
    below `height`.
    """
    shifts = sorted(range(-_FAR, _FAR + 1), key=lambda shift: (abs(shift), -shift))
    taken = [*boxes, *(Box(x - 1, y - 1, x + 1, y + 1) for line in lines for x, y in _along(line))]
    taken += [Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y, _ in marks]
    places = []
    for mark in marks:
        options = [Place(side, LINE * shift) for shift in shifts for side in (1, -1)]
        best = min(options, key=lambda place: _cost(_box(mark, place), taken, width, height))
        taken.append(_box(mark, best))
        places.append(best)
    return places


def _along(line: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Points of a path, a few pixels apart."""
    for (x, y), (to_x, to_y) in pairwise(line):
        count = max(int(max(abs(to_x - x), abs(to_y - y)) / _APART), 1)
        for at in range(count):
            yield x + (to_x - x) * at / count, y + (to_y - y) * at / count


def spread(heights: Sequence[float], gap: float = LINE) -> list[float]:
    """Heights moved as little as need be for all to lie `gap` apart, in the order that they have."""
    order = sorted(range(len(heights)), key=lambda at: heights[at])
    groups: list[tuple[float, int]] = []  # the middle of each group of touching labels, and how many they are
    for at in order:
        groups.append((heights[at], 1))
        while len(groups) > 1 and _touch(groups[-2], groups[-1], gap):
            (low, few), (high, many) = groups[-2:]
            groups[-2:] = [((low * few + high * many) / (few + many), few + many)]
    found = [middle + gap * (at - (count - 1) / 2) for middle, count in groups for at in range(count)]
    moved = dict(zip(order, found, strict=True))
    return [moved[at] for at in range(len(heights))]


def _touch(low: tuple[float, int], high: tuple[float, int], gap: float) -> bool:
    return high[0] - low[0] < gap * (low[1] + high[1]) / 2


def _box(mark: tuple[float, float, str], place: Place) -> Box:
    x, y, text = mark
    long = _LETTER * len(text)
    left = x + _MARK if place.side > 0 else x - _MARK - long
    middle = y + place.up
    return Box(left, middle - LINE / 2, left + long, middle + LINE / 2)


def _cost(box: Box, taken: Sequence[Box], width: float, height: float) -> float:
    outside = max(-box.left, 0) + max(box.right - width, 0) + max(box.high - height, 0) + max(-box.low, 0)
    return sum(box.overlap(other) for other in taken) + outside * LINE
