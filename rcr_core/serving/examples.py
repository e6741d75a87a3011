"""The finished runs that ship with the page, under ids that stay, so that links to them keep working."""

from __future__ import annotations

import logging
from pathlib import Path

from rcr_core.bundled.examples import EXAMPLES_FOLDER, example_scenes
from rcr_core.captioning import CaptionRequest
from rcr_core.errors import TraceError
from rcr_core.runs import RunStore
from rcr_core.runs.truth import scene_of
from rcr_core.serving.presets import PRESETS, settings_from
from rcr_core.serving.workbench import Question, Workbench
from rcr_core.trace import read_trace, save_trace

POLICIES = ("rcr", "bacon", "full")
SHOWN = ("5-ten-objects",)
_log = logging.getLogger(__name__)


def add_examples(store: RunStore, folder: Path = EXAMPLES_FOLDER) -> list[str]:
    """Hold the traces of a folder for everybody, and return their ids; what cannot be read is left out."""
    ids = []
    for path in sorted(folder.glob("*.rcr")):
        try:
            trace = read_trace(path)
        except TraceError as error:
            _log.warning("the example %s is left out: %s", path.name, error)
            continue
        label = path.stem.removesuffix(f"-{trace.meta.policy}")
        scene = scene_of(trace.meta)  # our own files are believed
        store.add("", trace, label=label, kind="example", public=True, scene=scene, run_id=path.stem)
        ids.append(path.stem)
    return ids


def write_examples(folder: Path = EXAMPLES_FOLDER) -> None:
    """Decode the runs that ship with the page, at the preset of the bundled captioner."""
    workbench = Workbench()
    workbench.load()
    for name in SHOWN:
        scene = example_scenes()[name]
        question = Question(scene.image(), workbench.prompt, scene, name)
        settings = settings_from(PRESETS[workbench.preset])
        for policy in POLICIES:
            run = workbench.start("", question, CaptionRequest(policy, settings))
            while not run.finished:
                run.wait(run.steps + 1, 1.0)
            save_trace(run.trace(), folder / f"{name}-{policy}.rcr")


if __name__ == "__main__":
    write_examples()
