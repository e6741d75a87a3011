"""A row of a study as a pair of runs: A is the row's run, B the uncompressed run of its image."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from rcr_core.bundled.scenes import make_scene
from rcr_core.captioning import Captioner, CaptionRequest
from rcr_core.errors import ScopeError, StudyError, UnknownRunError
from rcr_core.findings import Row
from rcr_core.findings.kinds import REFERENCE
from rcr_core.models import open_image
from rcr_core.serving.studies.held import HeldStudy
from rcr_core.serving.workbench import Question, Workbench
from rcr_core.settings import Settings
from rcr_core.study.data import Sample
from rcr_core.study.data.scenes import KINDS, MOST
from rcr_core.study.decoding import Decoder
from rcr_core.study.task import Identity

_SAMPLE = "scene "  # and its seed: the id of a sample of either
_IDENTITIES: WeakKeyDictionary[Captioner, Identity] = WeakKeyDictionary()


def open_row(study: HeldStudy, key: str, owner: str, workbench: Workbench) -> dict[str, Any]:
    """Decode a row's run and the uncompressed one, or find them where they are in the store already.

    The ids of both (`b` is None for an uncompressed row), and the step of the first difference (None where
    there is none). Raises `StudyError` where the row cannot be decoded here, `StoreFullError`.
    """
    row = next((row for row in study.rows if row.key == key), None)
    if row is None:
        raise StudyError("there is no such row in this study", "load the study again")
    _check_model(row, workbench)
    sample = _sample_of(row, study)
    settings = Settings.from_dict(row.settings)
    request = CaptionRequest(row.policy, settings, max_new_tokens=row.max_new_tokens)
    reference = replace(request, policy=REFERENCE)
    wanted = {"a": (request, row.key)}
    if row.policy != REFERENCE:
        wanted["b"] = (reference, (row.data, row.sample, row.prompt, row.max_new_tokens))
    runs: dict[str, str | None] = {"a": None, "b": None}
    fresh: list[str] = []
    question: Question | None = None
    try:
        for part, (asked, name) in wanted.items():
            runs[part] = _found(study, (owner, name), owner, workbench)
            if runs[part] is None:
                question = question or _question(row, sample)
                run = workbench.start(owner, question, asked)
                study.note_opened((owner, name), run.id)
                runs[part] = run.id
                fresh.append(run.id)
    except ScopeError:
        for run_id in fresh:
            workbench.store.drop(run_id, owner)
        raise
    leaves = row.diverges_at
    return {**runs, "step": leaves if leaves is not None and leaves >= 0 else None}


def _check_model(row: Row, workbench: Workbench) -> None:
    """Another model would write another text: what the row says would not be what the Scope shows."""
    try:
        here = _identity(workbench.captioner(0))
    except TimeoutError:
        raise StudyError("the model is still being loaded", "try again in a moment") from None
    if (row.model, row.dtype) != (here.model, here.dtype):
        there = row.dtype == here.dtype and row.model in workbench.models.names
        raise StudyError(
            f"this row was decoded by {row.model} in {row.dtype}, "
            f"this server has {here.model} in {here.dtype}",
            f"choose {row.model} in the Scope tab"
            if there
            else f"start app.py with --model {row.model} --dtype {row.dtype}",
        )
    if row.weights != here.weights:
        raise StudyError(
            f"this row was decoded by other weights of {row.model}", "decode the study anew with these"
        )


def _identity(captioner: Captioner) -> Identity:
    """Which model it is; its weights are read for that, so once."""
    if captioner not in _IDENTITIES:
        _IDENTITIES[captioner] = Decoder(captioner).identity
    return _IDENTITIES[captioner]


def _sample_of(row: Row, study: HeldStudy) -> Sample:
    """The image of a row: one that the study holds, or a drawn scene made anew from its seed."""
    sample = study.samples.get(row.sample) or _drawn(row)
    if sample is None:
        raise StudyError(
            f"the picture of this row is not on this server: {row.sample} of {row.data}",
            "drawn scenes are made anew here; a picture of other data can be opened in the Scope tab",
        )
    if sample.prompt != row.prompt:
        raise StudyError("this release asks another question about this scene", "decode the study anew")
    return sample


def _drawn(row: Row) -> Sample | None:
    seed = row.sample.removeprefix(_SAMPLE)
    known = row.data in KINDS and row.sample.startswith(_SAMPLE) and seed.isdecimal() and len(seed) < 9
    if not known or int(seed) >= MOST:
        return None
    return KINDS[row.data](int(seed))


def _question(row: Row, sample: Sample) -> Question:
    scene = make_scene(**sample.scene) if sample.scene else None
    return Question(open_image(sample.read()), row.prompt, scene, row.sample)


def _found(study: HeldStudy, what: tuple, owner: str, workbench: Workbench) -> str | None:
    """The run of an earlier opening, if it is there and was not broken off."""
    run_id = study.opened.get(what)
    if run_id is None:
        return None
    try:
        run = workbench.store.get(run_id, owner)
    except UnknownRunError:
        return None
    return None if run.status in ("stopped", "error") else run_id
