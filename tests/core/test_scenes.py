"""Scenes: pictures, captions and questions that agree with each other."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from rcr_core.bundled.examples import EXAMPLES_FOLDER, example_scenes, scene_in
from rcr_core.bundled.grading import grade, mentions
from rcr_core.bundled.scenes import ATTRIBUTES, CELL, COLUMNS, ROWS, make_scene
from rcr_core.bundled.shapes import BACKGROUNDS, COLOURS, FILLS, SHAPES, SIZES, mask
from rcr_core.errors import SettingsError
from rcr_core.models import open_image

SEEDS = range(60)


def test_a_seed_is_a_scene():
    assert make_scene(3) == make_scene(3)
    assert np.array_equal(make_scene(3).pixels(), make_scene(3).pixels())
    assert make_scene(3) != make_scene(4)


@pytest.mark.parametrize("grid", [1, 2, 3, 4, 5])
def test_objects_stay_in_their_cells_and_in_reading_order(grid):
    for seed in SEEDS:
        cells = []
        for thing in make_scene(seed, grid).objects:
            left, top, right, bottom = thing.box
            low, high = SIZES[thing.size]
            assert low <= right - left == bottom - top <= high
            assert left // CELL == (right - 1) // CELL
            assert top // CELL == (bottom - 1) // CELL
            cells.append((top // CELL, left // CELL))
        assert cells == sorted(set(cells))


def test_the_colour_named_is_the_colour_seen():
    """Inside a solid object's box the darkest-to-background pixels have the named colour, to the jitter."""
    for seed in SEEDS:
        scene = make_scene(seed)
        pixels = scene.pixels().astype(int)
        for thing in scene.objects:
            left, top, right, bottom = thing.box
            area = pixels[top:bottom, left:right].reshape(-1, 3)
            distance = np.abs(area - np.asarray(COLOURS[thing.colour])).max(1)
            assert distance.min() <= 9
            other = np.abs(area - np.asarray(BACKGROUNDS[scene.background])).max(1)
            assert (other <= 4).any(), "some background shows around every shape"


@pytest.mark.parametrize("grid", [1, 2, 3, 4, 5])
def test_outside_the_boxes_there_is_only_background(grid):
    for seed in range(10):
        scene = make_scene(seed, grid)
        pixels = scene.pixels().astype(int)
        for thing in scene.objects:
            left, top, right, bottom = thing.box
            pixels[top:bottom, left:right] = BACKGROUNDS[scene.background]
        assert np.abs(pixels - np.asarray(BACKGROUNDS[scene.background])).max() <= 3


def test_every_shape_fill_and_size_looks_different():
    for diameter in (28, 54):
        masks = {(s, f): mask(s, f, diameter) for s in SHAPES for f in FILLS}
        for one, other in combinations(masks, 2):
            assert np.abs(masks[one] - masks[other]).mean() > 0.02, (one, other)


def test_a_caption_names_every_object_with_its_four_attributes_in_order():
    for seed in SEEDS:
        scene = make_scene(seed)
        assert scene.caption == "".join(part.text for part in scene.parts)
        said = re.findall(r"there is a (\w+) (\w+) (\w+) (\w+)", scene.caption)
        assert said == [tuple(getattr(thing, name) for name in ATTRIBUTES) for thing in scene.objects]


def test_parts_say_which_words_speak_of_which_object():
    scene = make_scene(11)
    for index, thing in enumerate(scene.objects):
        words = {part.attribute: part.text.strip() for part in scene.parts if part.thing == index}
        assert {name: words[name] for name in ATTRIBUTES} == {n: getattr(thing, n) for n in ATTRIBUTES}
        assert thing.column in words[None]


def test_questions_are_answered_by_the_scene():
    scene = make_scene(7)
    for question in scene.questions():
        row, column = re.search(r"in the (\w+) row, at the ([^?]+)\?", question.text).groups()
        here = [thing for thing in scene.objects if (thing.row, thing.column) == (row, column)]
        if question.kind == "presence":
            assert question.answer == ("yes" if here else "no")
        else:
            assert question.answer == getattr(here[0], question.kind)
    kinds = [question.kind for question in scene.questions()]
    assert kinds.count("presence") == 25
    assert len(kinds) == 25 + 4 * len(scene.objects)


@pytest.mark.parametrize(("grid", "count"), [(0, None), (6, None), (5, 26), (2, 0)])
def test_impossible_scenes_are_refused(grid, count):
    with pytest.raises(SettingsError, match="must be in"):
        make_scene(0, grid, count)


def test_a_right_caption_is_graded_right():
    for seed in SEEDS:
        scene = make_scene(seed)
        result = grade(scene, scene.caption)
        assert (result.right, result.invented, result.wrong, result.exact) == (result.total, 0, (), True)


def test_a_wrong_word_costs_its_object_and_is_marked():
    scene = make_scene(5)
    thing = scene.objects[1]
    other = next(colour for colour in COLOURS if colour != thing.colour)
    at = scene.caption.replace(f"{thing.colour} {thing.shape}", f"{other} {thing.shape}", 1)
    result = grade(scene, at)
    assert result.right == result.total - 1
    assert [at[start:stop] for start, stop in result.wrong] == [other]
    assert not result.exact


def test_a_missing_and_an_invented_object_are_counted():
    scene = make_scene(5)
    place = next(
        (r, c) for r in ROWS for c in COLUMNS if (r, c) not in {(t.row, t.column) for t in scene.objects}
    )
    text = f"In the {place[0]} row, at the {place[1]}, there is a large solid red star."
    result = grade(scene, text)
    assert (result.right, result.invented, result.mentions) == (0, 1, 1)
    assert result.attributes == (None,) * len(scene.objects)
    assert grade(scene, "").right == 0


def test_a_row_carries_over_to_the_next_mention():
    text = "In the top row, at the far left, there is a a b c d; at the right, there is a e f g h"
    assert [(m.row, m.column) for m in mentions(text)] == [("top", "far left"), ("top", "right")]


@pytest.mark.parametrize("name", list(example_scenes()))
def test_the_shipped_examples_are_their_scenes(name):
    scene = example_scenes()[name]
    assert scene_in(open_image(EXAMPLES_FOLDER / f"{name}.png")) == scene
    assert (
        len(scene.objects)
        == {
            "four": 4,
            "five": 5,
            "seven": 7,
            "eight": 8,
            "ten": 10,
            "eleven": 11,
            "thirteen": 13,
            "fourteen": 14,
        }[name.split("-")[1]]
    )


def test_any_other_picture_is_no_example():
    assert scene_in(make_scene(1).image()) is None
