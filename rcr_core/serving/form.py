"""The form of the page: from what a person filled in to runs."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from PIL import Image

from rcr_core.bundled.examples import scene_in
from rcr_core.bundled.scenes import make_scene
from rcr_core.captioning import CaptionRequest
from rcr_core.errors import ImageError, PromptError, ScopeError, SettingsError
from rcr_core.models import PreparedPrompt, open_image
from rcr_core.serving.presets import (
    MAIN_SETTINGS,
    PRESETS,
    default_values,
    setting_names,
    settings_from,
    whole_number,
)
from rcr_core.serving.workbench import Question, Workbench
from rcr_core.settings import Settings

NEW_TOKENS = 320
HELD_OUT_SEEDS = 1_000_000  # scenes of lower seeds were not trained on


class Form:
    """What the controls of the page do."""

    def __init__(self, workbench: Workbench):
        self.workbench = workbench

    def question(self, path: str | None, prompt: str, seed: float | None = None) -> Question:
        """The picture of a file and a prompt. Raises `ImageError` and `PromptError`."""
        if not path:
            raise ImageError("there is no picture yet", "drop one, paste one, or pick an example")
        image = open_image(path)
        return Question(image, prompt, scene_in(image, _seed(seed)), Path(path).stem[:60])

    def start(
        self,
        path: str | None,
        prompt: str,
        policy_a: str,
        policy_b: str,
        reference: bool,
        seed: float | None,
        max_new_tokens: float | None,
        *values_and_owner: Any,
    ) -> str:
        """Start A, B (unless empty) and the uncompressed reference.

        Settings are ordered as in `setting_names`; then come B's own `MAIN_SETTINGS`, as text, empty for A's.
        The answer is JSON: the ids of the runs by their part, or `error` and `hint`.
        """
        *values, owner = values_and_owner
        parts = {"a": policy_a, "b": policy_b}
        if reference and "full" not in parts.values():
            parts["reference"] = "full"
        try:
            if not owner:
                raise PromptError("the page is not ready yet", "wait a moment, and press Run again")
            question = self.question(path, prompt, seed)
            settings, settings_b = _settings(values)
            count = whole_number("max_new_tokens", max_new_tokens)
            requests = {
                part: CaptionRequest(policy, settings_b if part == "b" else settings, max_new_tokens=count)
                for part, policy in parts.items()
                if policy
            }
            return json.dumps(self._start(owner, question, requests))
        except ScopeError as error:
            return json.dumps({"error": error.message, "hint": error.hint})

    def _start(self, owner: str, question: Question, requests: dict[str, CaptionRequest]) -> dict[str, str]:
        """Start all of the runs or, where the store does not take one, none."""
        started: dict[str, str] = {}
        try:
            for part, request in requests.items():
                started[part] = self.workbench.start(owner, question, request).id
        except ScopeError:
            for run_id in started.values():
                self.workbench.store.drop(run_id, owner)
            raise
        return started

    def preview(self, path: str | None, prompt: str) -> PreparedPrompt | None:
        """What the model makes of the picture, None without one. Raises `ImageError` and `PromptError`."""
        if not path:
            return None
        return self.workbench.prepare(Question(open_image(path), prompt.strip() or self.workbench.prompt))

    def preset_values(self, preset: str) -> list[float]:
        """The values of a preset, for the controls of the main settings."""
        return list(PRESETS[preset].values())

    def reset(self) -> list[Any]:
        """A form as it was at first: preset, number of new tokens, every setting, and none of B's own."""
        preset = self.workbench.preset
        return [preset, NEW_TOKENS, *default_values(preset), *(None for _ in MAIN_SETTINGS)]

    def scene(self, seed: float | None = None) -> tuple[Image.Image, int]:
        """The picture of a scene's seed, and the seed: a new one where none is given.

        Raises `SettingsError` for a seed that no held-out scene has.
        """
        number = secrets.randbelow(HELD_OUT_SEEDS) if seed is None else _seed(seed)
        if number is None:
            raise SettingsError(
                f"seed must be a whole number in [0, {HELD_OUT_SEEDS - 1}], got {seed!r}",
                "the model may have been trained on scenes of other seeds",
            )
        return make_scene(number).image(), number


def _settings(values: list[Any]) -> tuple[Settings, Settings]:
    """The settings of A, and of B: A's, but for those that B has of its own. Raises `SettingsError`."""
    names = [*setting_names(), *MAIN_SETTINGS]
    both = list(zip(names, values, strict=True))
    common, own = both[: -len(MAIN_SETTINGS)], both[-len(MAIN_SETTINGS) :]
    differing = {name: _number(text) for name, text in own if text is not None and text.strip()}
    return settings_from(dict(common)), settings_from(dict(common) | differing)


def _number(text: str) -> float | str:
    """What a person wrote as a number; as it stands where it is none, for the settings to refuse."""
    try:
        return float(text)
    except ValueError:
        return text


def _seed(value: float | None) -> int | None:
    """The seed of a held-out scene; None for what is none."""
    held_out = isinstance(value, int | float) and 0 <= value < HELD_OUT_SEEDS and value == int(value)
    return int(value) if held_out else None
