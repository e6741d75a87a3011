"""What the page says is right, wrong or missing in a caption, against values written by hand."""

from __future__ import annotations

import pytest

from rcr_core.__main__ import main
from rcr_core.bundled.examples import EXAMPLES_FOLDER, example_scenes
from rcr_core.bundled.scenes import Scene, SceneObject, make_scene
from rcr_core.runs import RunStore
from rcr_core.runs.truth import scene_facts, scene_of, truth
from rcr_core.trace import read_trace
from tests.core.stores import ANNA
from tests.core.trace_samples import small_meta, small_trace

CIRCLE = SceneObject("top", "far left", "large", "solid", "red", "circle", (4, 8, 56, 60))
STAR = SceneObject("bottom", "far right", "small", "hollow", "blue", "star", (72, 80, 104, 112))
HAND = Scene(0, 2, "white", (CIRCLE, STAR))  # a picture of 128 x 128 pixels
START = "This picture shows objects on a plain white background."
TOP = " In the top row, at the far left, there is a large solid red circle"
BOTTOM = ". In the bottom row, at the far right, there is a small hollow blue star"
END = ". Apart from that, there is nothing else in the picture."
# START has 55 characters, TOP 67 and BOTTOM 72; a mention begins at "In".
RIGHT = [{"start": 56, "end": 122, "object": 0}, {"start": 124, "end": 194, "object": 1}]


def objects(circle: str, star: str) -> list[dict]:
    return [
        {
            "box": [0.03125, 0.0625, 0.4375, 0.46875],
            "name": "large solid red circle",
            "place": "in the top row, at the far left",
            "state": circle,
        },
        {
            "box": [0.5625, 0.625, 0.8125, 0.875],
            "name": "small hollow blue star",
            "place": "in the bottom row, at the far right",
            "state": star,
        },
    ]


def test_an_exact_caption():
    assert truth(HAND, START + TOP + BOTTOM + END) == {
        "right": 2,
        "total": 2,
        "invented": 0,
        "exact": True,
        "objects": objects("right", "right"),
        "said": RIGHT,
        "wrong": [],
    }


def test_a_wrong_word():
    """The star is called green: one object is wrong, and so is that word."""
    found = truth(HAND, START + TOP + BOTTOM.replace("blue", "teal") + END)
    assert found == {
        "right": 1,
        "total": 2,
        "invented": 0,
        "exact": False,
        "objects": objects("right", "wrong"),
        "said": RIGHT,
        "wrong": [[185, 189]],
    }


def test_an_invented_object():
    extra = "; at the far right, there is a small solid pink moon"
    found = truth(HAND, START + TOP + extra + BOTTOM + END)
    assert (found["right"], found["total"], found["invented"], found["exact"]) == (2, 2, 1, False)
    assert found["objects"] == objects("right", "right")
    assert found["said"] == [
        {"start": 56, "end": 122, "object": 0},
        {"start": 124, "end": 174, "object": None},
        {"start": 176, "end": 246, "object": 1},
    ]
    assert found["wrong"] == [[124, 174]]


def test_a_place_named_twice():
    """The second mention speaks of an object that is there, but is one too many."""
    found = truth(HAND, START + TOP + BOTTOM + BOTTOM)
    assert (found["right"], found["invented"]) == (2, 1)
    assert found["said"] == [*RIGHT, {"start": 196, "end": 266, "object": 1}]
    assert found["wrong"] == [[196, 266]]


@pytest.mark.parametrize(
    ("text", "states", "said"),
    [
        ("", ("missing", "missing"), []),
        (START + TOP[:-7], ("missing", "missing"), []),
        (START + TOP + BOTTOM[:-5], ("right", "missing"), RIGHT[:1]),
        (START + TOP + BOTTOM, ("right", "right"), RIGHT),
    ],
    ids=["nothing yet", "within the first object", "within the second", "both"],
)
def test_a_caption_that_is_being_written(text, states, said):
    found = truth(HAND, text)
    assert found["objects"] == objects(*states)
    assert found["said"] == said
    assert (found["right"], found["invented"], found["exact"], found["wrong"]) == (len(said), 0, False, [])


# The scene of a trace


@pytest.mark.parametrize("scene", [*example_scenes().values(), make_scene(3), make_scene(4, grid=3)])
def test_a_scene_comes_back_from_what_a_trace_records(scene):
    side = 64 * scene.grid
    again = scene_of(small_meta(scene=scene_facts(scene), image_size=[(side, side)]))
    assert again == scene and again.caption == scene.caption


@pytest.mark.parametrize(
    "changes",
    [
        {"scene": None},
        {"scene": {"seed": 1, "grid": 9, "count": 4}},
        {"scene": {"seed": 1, "grid": 5, "count": 1 << 50}},
        {"scene": {"seed": 1, "grid": 5, "count": 0}},
        {"image_size": [(320, 321)]},
        {"image_size": [(320, 320)] * 2},
    ],
)
def test_a_file_that_names_no_scene_or_an_impossible_one(changes):
    good = {"scene": {"seed": 9001, "grid": 5, "count": 4}, "image_size": [(320, 320)]}
    assert scene_of(small_meta(**good)) is not None
    assert scene_of(small_meta(**{**good, **changes})) is None


def test_the_trace_of_an_example_names_its_scene(tmp_path, capsys):
    """What the command line records of an example picture, the store shows beside the caption."""
    out = tmp_path / "run.rcr"
    picture = EXAMPLES_FOLDER / "1-four-objects.png"
    assert main(["caption", str(picture), "--policy", "full", "--out", str(out)]) == 0
    trace = read_trace(out)
    assert trace.meta.scene == {"seed": 9001, "grid": 5, "count": 4}
    run = RunStore().add(ANNA, trace, label="run.rcr", scene=scene_of(trace.meta))
    found = run.truth()
    assert f"{found['right']} of 4 in all four attributes" in capsys.readouterr().out
    assert found["total"] == 4 and found["exact"] == (trace.text == run.scene.caption)
    other = small_trace()
    assert RunStore().add(ANNA, other, label="other.rcr", scene=scene_of(other.meta)).truth() is None
    unbelieved = RunStore().add(ANNA, trace, label="run.rcr")
    assert unbelieved.scene is None and unbelieved.truth() is None
