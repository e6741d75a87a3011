"""How a caption stands against the scene that its picture shows, while it is written and after.

Characters index `Trace.text` by code points; captions of scenes are ASCII, so browsers count the same.
"""

from __future__ import annotations

from rcr_core.bundled.grading import grade, mentions
from rcr_core.bundled.scenes import ATTRIBUTES, CELL, Scene, SceneObject, make_scene
from rcr_core.errors import SettingsError
from rcr_core.trace import TraceMeta


def truth(scene: Scene, text: str) -> dict[str, object]:
    """What a text gets right of a scene, as plain JSON.

    objects: the scene's, each `right`, `wrong` or `missing` (so far); said: every mention with the object at
    the place that it names, None where there is none; wrong: spans of characters that are wrong.
    """
    graded = grade(scene, text)
    places = {(thing.row, thing.column): index for index, thing in enumerate(scene.objects)}
    objects = [
        _described(thing, scene.grid * CELL) | {"state": _state(found)}
        for thing, found in zip(scene.objects, graded.attributes, strict=True)
    ]
    said = [
        {"start": one.span[0], "end": one.span[1], "object": places.get((one.row, one.column))}
        for one in mentions(text)
    ]
    return {
        "right": graded.right,
        "total": graded.total,
        "invented": graded.invented,
        "exact": graded.exact,
        "objects": objects,
        "said": said,
        "wrong": [list(span) for span in graded.wrong],
    }


def scene_facts(scene: Scene) -> dict[str, int]:
    """What a trace records of the scene that its picture shows."""
    return {"seed": scene.seed, "grid": scene.grid, "count": len(scene.objects)}


def scene_of(meta: TraceMeta) -> Scene | None:
    """The scene that a trace says its picture shows; None without one, or where it cannot be that picture."""
    if meta.scene is None:
        return None
    try:
        scene = make_scene(**meta.scene)
    except SettingsError:
        return None
    side = scene.grid * CELL
    return scene if meta.image_size == ((side, side),) else None


def _described(thing: SceneObject, side: int) -> dict[str, object]:
    return {
        "box": [edge / side for edge in thing.box],
        "name": " ".join(getattr(thing, name) for name in ATTRIBUTES),
        "place": thing.place,
    }


def _state(found: dict[str, bool] | None) -> str:
    if found is None:
        return "missing"
    return "right" if all(found.values()) else "wrong"
