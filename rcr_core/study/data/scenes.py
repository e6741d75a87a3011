"""Held-out bundled scenes: `SCENES:200` to describe, `QUESTIONS:200` with one short question each."""

from __future__ import annotations

import io
import re
from functools import partial

import numpy as np

from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.errors import StudyError
from rcr_core.runs.truth import scene_facts
from rcr_core.study.data.sample import Sample, Source

CAPTION_TOKENS = 320
ANSWER_TOKENS = 8
MOST = 100_000  # far below the seeds that the captioner was trained on


def scene_source(kind: str, count: str) -> Source:
    """The scenes of seeds 0 to `count` - 1: "scenes" to be described, or "questions".

    Raises `StudyError` where the count is no whole number in [1, `MOST`].
    """
    number = int(count) if re.fullmatch(r"[0-9]{1,6}", count) else 0
    if not 1 <= number <= MOST:
        raise StudyError(
            f"{kind.upper()} takes a whole number in [1, {MOST}], got {count[:40]!r}",
            f"write {kind.upper()}:200",
        )
    return Source(kind, number, KINDS[kind])


def _caption(seed: int) -> Sample:
    """A scene to be described; the reference is the scene's own caption."""
    scene = make_scene(seed)
    facts = scene_facts(scene)
    return Sample(
        id=f"scene {seed}",
        prompt=CAPTION_PROMPT,
        read=partial(_png, facts),
        max_new_tokens=CAPTION_TOKENS,
        references=(scene.caption,),
        scene=facts,
    )


def _question(seed: int) -> Sample:
    """A scene with one short question, drawn from all that it answers."""
    scene = make_scene(seed)
    asked = scene.questions()
    question = asked[int(np.random.default_rng([seed, 3]).integers(len(asked)))]
    return Sample(
        id=f"scene {seed}",
        prompt=question.text,
        read=partial(_png, scene_facts(scene)),
        max_new_tokens=ANSWER_TOKENS,
        answers=(question.answer,),
    )


KINDS = {"scenes": _caption, "questions": _question}


def _png(facts: dict[str, int]) -> bytes:
    file = io.BytesIO()
    make_scene(**facts).image().save(file, "PNG")
    return file.getvalue()
