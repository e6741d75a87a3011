"""What a person asks for when they start a study, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rcr_core.errors import PromptError, SettingsError
from rcr_core.policies import POLICIES
from rcr_core.serving.presets import PRESETS, settings_from
from rcr_core.serving.studies.pictures import MAX_PICTURES, Picture
from rcr_core.serving.workbench import MAX_PROMPT, Workbench
from rcr_core.settings import Settings, range_text
from rcr_core.study.data import DataSet, Sample
from rcr_core.study.data.sample import numbered
from rcr_core.study.data.scenes import CAPTION_TOKENS, KINDS, MOST
from rcr_core.study.task import Part, Task, plan
from rcr_core.study.variants import (
    BUDGETS,
    GRID_BUDGETS,
    GRID_RATES,
    RANKS,
    RATES,
    SWEEPS,
    THRESHOLDS,
    of_policies,
    sweep,
)

DATA = ("scenes", "questions", "pictures")
SETTINGS = ("select", "window", "tau0", "rho", "gain", "update")
POLICIES_AT_FIRST = ("full", "bacon", "rcr")
MAX_IMAGES = 50
MAX_TASKS = 600
MAX_TOKENS = 512
_FIELDS = ("data", "count", "first", "prompt", "max_new_tokens", "pictures", "policies", "settings", "sweeps")
_LONGEST = 60  # characters of what is told back
_IMAGES = {"scenes": "scene", "questions": "question", "pictures": "picture"}


def _span(values: Sequence[float]) -> str:
    return f"{values[0]:g} to {values[-1]:g}"


_SWEPT = {
    "thresholds": f"the fixed threshold at tau0 {_span(THRESHOLDS)}",
    "budgets": f"every policy with {_span(BUDGETS)} entries",
    "rates": f"RCR at rho {_span(RATES)}",
    "updates": "RCR with tau moved after each layer, or once a step",
    "ranks": f"RCR with a sketch of rank {_span(RANKS)}",
    "grid": f"BACON and RCR with {_span(GRID_BUDGETS)} entries, RCR at rho {_span(GRID_RATES)}",
}


@dataclass(frozen=True)
class Asked:
    """A study that can run: its tasks, its samples by id, and what it is called."""

    label: str
    tasks: tuple[Task, ...]
    samples: Mapping[str, Sample]
    pictures: Sequence[Picture]


def choices(workbench: Workbench) -> dict[str, Any]:
    """What the form of a study offers, as plain JSON: data, policies, settings with their ranges, sweeps."""
    base = Settings().to_dict() | PRESETS[workbench.preset]
    specs = {spec.name: spec for spec in fields(Settings)}
    return {
        "data": [name for name in DATA if workbench.bundled or name == "pictures"],
        "max_images": MAX_IMAGES,
        "max_first": MOST - 1,
        "max_pictures": MAX_PICTURES,
        "max_tasks": MAX_TASKS,
        "max_tokens": MAX_TOKENS,
        "max_new_tokens": CAPTION_TOKENS,
        "prompt": workbench.prompt,
        "policies": [
            {"name": name, "title": policy.title, "summary": policy.summary, "on": name in POLICIES_AT_FIRST}
            for name, policy in POLICIES.items()
        ],
        "settings": [{"name": name, "value": base[name], **specs[name].metadata} for name in SETTINGS],
        "sweeps": [
            {
                "name": name,
                "help": _SWEPT.get(name, ""),
                "runs": len(vary(Settings(), ["rcr"])),
                "each": name == "budgets",
            }
            for name, vary in SWEEPS.items()
        ],
    }


def asked(values: Any, pictures: Sequence[Picture], workbench: Workbench) -> Asked:
    """The study that a request describes. Raises `SettingsError` and `PromptError`, which name the field.

    values: see the names above; what is left out has the value that the form begins with.
    """
    if not isinstance(values, dict):
        raise SettingsError(f"a study must be an object of names and values, got {type(values).__name__}")
    if unknown := sorted(set(values) - set(_FIELDS)):
        raise SettingsError(f"unknown field {unknown[0][:_LONGEST]!r}", f"known fields: {', '.join(_FIELDS)}")
    data = _data(values, pictures, workbench)
    base = _settings(values.get("settings", {}), workbench)
    policies = _names(values, "policies", POLICIES, list(POLICIES_AT_FIRST))
    sweeps = _names(values, "sweeps", SWEEPS, [])
    if not policies:
        raise SettingsError("policies must name one or more policies", f"known: {', '.join(POLICIES)}")
    variants = dict.fromkeys([*of_policies(policies, base), *sweep(sweeps, policies, base)])
    tasks = tuple(plan([Part(data, list(variants))]))
    images = len(data.samples)
    if len(tasks) > MAX_TASKS:
        raise SettingsError(
            f"a study on the page has at most {MAX_TASKS} runs: {images} images x {len(variants)} policies "
            f"and settings are {len(tasks):,}",
            "take fewer images, policies or sweeps; the command line takes any number",
        )
    named = f"{images} {_IMAGES[data.name]}{'s' if images > 1 else ''}"
    runs = f"{len(variants)} {'policies' if not sweeps else 'policies and settings'}"
    samples = {sample.id: sample for sample in data.samples}
    return Asked(f"{named}, {runs}", tasks, samples, pictures)


def _data(values: dict[str, Any], pictures: Sequence[Picture], workbench: Workbench) -> DataSet:
    name = values.get("data", "scenes")
    if name not in DATA:
        raise SettingsError(f"data must be one of {', '.join(DATA)}, got {str(name)[:_LONGEST]!r}")
    tokens = _within("max_new_tokens", values.get("max_new_tokens", CAPTION_TOKENS), 1, MAX_TOKENS)
    if name == "pictures":
        return _own(pictures, _prompt(values.get("prompt", workbench.prompt)), tokens)
    count = _within("count", values.get("count", 5), 1, MAX_IMAGES)
    first = _within("first", values.get("first", 0), 0, MOST - count)
    drawn = [KINDS[name](seed) for seed in range(first, first + count)]
    return DataSet(name, [replace(one, max_new_tokens=min(one.max_new_tokens, tokens)) for one in drawn])


def _own(pictures: Sequence[Picture], prompt: str, tokens: int) -> DataSet:
    if not 1 <= len(pictures) <= MAX_PICTURES:
        raise SettingsError(f"pictures must be 1 to {MAX_PICTURES} pictures, got {len(pictures)}")
    names = numbered(picture.name for picture in pictures)
    return DataSet(
        "pictures",
        [
            Sample(name, prompt, lambda data=one.data: data, tokens)
            for name, one in zip(names, pictures, strict=True)
        ],
    )


def _prompt(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise PromptError("the prompt is empty", "write what the model is to do with the pictures")
    if len(text) > MAX_PROMPT:
        raise PromptError(f"prompt must have at most {MAX_PROMPT:,} characters, got {len(text):,}")
    return text


def _settings(values: Any, workbench: Workbench) -> Settings:
    if isinstance(values, dict) and (foreign := sorted(set(values) - set(SETTINGS))):
        raise SettingsError(
            f"unknown setting {foreign[0][:_LONGEST]!r}", f"known settings: {', '.join(SETTINGS)}"
        )
    return settings_from(PRESETS[workbench.preset] | values if isinstance(values, dict) else values)


def _names(values: dict[str, Any], field: str, known: Mapping[str, Any], default: list[str]) -> list[str]:
    names = values.get(field, default)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SettingsError(f"{field} must be a list of names", f"known: {', '.join(known)}")
    for name in names:
        if name not in known:
            raise SettingsError(
                f"{field} names an unknown one: {name[:_LONGEST]!r}", f"known: {', '.join(known)}"
            )
    return names


def _within(name: str, value: Any, low: int, high: int) -> int:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not fits or value != int(value):
        got = str(value)[:_LONGEST]
        raise SettingsError(f"{name} must be a whole number in {range_text(low, high)}, got {got}")
    return int(value)
