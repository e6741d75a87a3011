"""Procedural scenes: the only pictures that the bundled captioner reads.

A scene holds 4 to 14 objects on a 5x5 grid (fewer on the smaller grids of the training curriculum). It knows
its picture, its caption, the box of every object, which words of the caption speak of which object, and short
questions with one-word answers. Everything follows from one seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from PIL import Image

from rcr_core.bundled.shapes import BACKGROUNDS, COLOURS, FILLS, SHAPES, SIZES, mask
from rcr_core.errors import SettingsError

CELL = 64  # pixels; a scene of grid g is a picture of g x 64 pixels a side
ROWS = ("top", "second", "middle", "fourth", "bottom")
COLUMNS = ("far left", "left", "centre", "right", "far right")
ATTRIBUTES = ("size", "fill", "colour", "shape")  # the order in which a caption names them
# Smaller grids use those words of the 5x5 grid that name about the same part of the picture.
_PLACES = {1: (2,), 2: (0, 4), 3: (0, 2, 4), 4: (0, 1, 3, 4), 5: (0, 1, 2, 3, 4)}
_COUNTS = {1: (1, 1), 2: (1, 4), 3: (2, 7), 4: (3, 10), 5: (4, 14)}

CAPTION_PROMPT = (
    "Describe this image in detail. Go through the rows from top to bottom, and for every object give "
    "its place, its size, its fill, its colour and its shape."
)


@dataclass(frozen=True)
class SceneObject:
    """One object. `box` is (left, top, right, bottom) in pixels of the scene's picture."""

    row: str
    column: str
    size: str
    fill: str
    colour: str
    shape: str
    box: tuple[int, int, int, int]

    @property
    def place(self) -> str:
        return f"in the {self.row} row, at the {self.column}"


@dataclass(frozen=True)
class CaptionPart:
    """A run of characters of a caption; `thing` is the index of the object that it speaks of, or None."""

    text: str
    thing: int | None = None
    attribute: str | None = None


@dataclass(frozen=True)
class Question:
    """A short question with a one-word answer; `thing` is the index of the object asked about, or None."""

    text: str
    answer: str
    kind: str
    thing: int | None


@dataclass(frozen=True)
class Scene:
    """A picture with `objects` in reading order on a `grid` x `grid` layout."""

    seed: int
    grid: int
    background: str
    objects: tuple[SceneObject, ...]

    @cached_property
    def parts(self) -> tuple[CaptionPart, ...]:
        """The caption in parts; their texts joined are the caption."""
        parts = [CaptionPart(f"This picture shows objects on a plain {self.background} background.")]
        row = None
        for index, thing in enumerate(self.objects):
            if thing.row != row:
                stop = "." if row else ""
                parts.append(
                    CaptionPart(f"{stop} In the {thing.row} row, at the {thing.column}, there is a", index)
                )
                row = thing.row
            else:
                parts.append(CaptionPart(f"; at the {thing.column}, there is a", index))
            parts += [CaptionPart(" " + getattr(thing, name), index, name) for name in ATTRIBUTES]
        parts.append(CaptionPart(". Apart from that, there is nothing else in the picture."))
        return tuple(parts)

    @property
    def caption(self) -> str:
        return "".join(part.text for part in self.parts)

    def questions(self) -> list[Question]:
        """Every short question that this scene answers: four per object, and one yes/no per cell."""
        asked = []
        for index, thing in enumerate(self.objects):
            for name in ATTRIBUTES:
                text = f"What {name} is the object {thing.place}? Answer with one word."
                asked.append(Question(text, getattr(thing, name), name, index))
        taken = {(thing.row, thing.column): index for index, thing in enumerate(self.objects)}
        for row in _PLACES[self.grid]:
            for column in _PLACES[self.grid]:
                place = (ROWS[row], COLUMNS[column])
                text = f"Is there an object in the {place[0]} row, at the {place[1]}? Answer with one word."
                asked.append(Question(text, "yes" if place in taken else "no", "presence", taken.get(place)))
        return asked

    def pixels(self) -> np.ndarray:
        """The picture: uint8 [grid*64, grid*64, 3]."""
        rng = np.random.default_rng([self.seed, self.grid, 1])
        side = self.grid * CELL
        canvas = np.empty((side, side, 3), dtype=np.float32)
        canvas[:] = np.asarray(BACKGROUNDS[self.background]) + rng.integers(-3, 4, 3)
        for thing in self.objects:
            left, top, right, bottom = thing.box
            cover = mask(thing.shape, thing.fill, right - left)[..., None]
            colour = np.asarray(COLOURS[thing.colour]) + rng.integers(-8, 9, 3)
            patch = canvas[top:bottom, left:right]
            patch += cover * (colour - patch)
        return np.clip(np.rint(canvas), 0, 255).astype(np.uint8)

    def image(self) -> Image.Image:
        return Image.fromarray(self.pixels())


def make_scene(seed: int, grid: int = 5, count: int | None = None) -> Scene:
    """The scene of a seed. Raises `SettingsError` for an unknown grid or a count that does not fit it."""
    if grid not in _COUNTS:
        raise SettingsError(f"grid must be in [1, 5], got {grid!r}")
    low, high = _COUNTS[grid]
    rng = np.random.default_rng([seed, grid, 0])
    drawn = int(rng.integers(low, high + 1))
    count = drawn if count is None else count
    if not 1 <= count <= grid * grid:
        raise SettingsError(f"count must be in [1, {grid * grid}] on a {grid}x{grid} grid, got {count!r}")
    cells = np.sort(rng.choice(grid * grid, size=count, replace=False))
    background = str(rng.choice(list(BACKGROUNDS)))
    return Scene(seed, grid, background, tuple(_object(rng, grid, int(cell)) for cell in cells))


def _object(rng: np.random.Generator, grid: int, cell: int) -> SceneObject:
    row, column = divmod(cell, grid)
    size = str(rng.choice(list(SIZES)))
    low, high = SIZES[size]
    diameter = int(rng.integers(low, high + 1))
    room = CELL - diameter
    left, top = (int(side) * CELL + int(rng.integers(2, room - 1)) for side in (column, row))
    return SceneObject(
        row=ROWS[_PLACES[grid][row]],
        column=COLUMNS[_PLACES[grid][column]],
        size=size,
        fill=str(rng.choice(FILLS)),
        colour=str(rng.choice(list(COLOURS))),
        shape=str(rng.choice(SHAPES)),
        box=(left, top, left + diameter, top + diameter),
    )
