"""The form of the page: from what a person filled in to runs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
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
from rcr_core.serving.workbench import (
    FIRST_PROMPTS,
    MAX_PICTURES,
    Question,
    Workbench,
    first_preset,
    first_prompt,
)
from rcr_core.settings import Settings

NEW_TOKENS = 320
Files = Sequence[str | tuple[str, str | None]] | None  # paths, each alone or with its caption
HELD_OUT_SEEDS = 1_000_000  # scenes of lower seeds were not trained on


class Form:
    """What the controls of the page do."""

    def __init__(self, workbench: Workbench):
        self.workbench = workbench

    def question(
        self,
        path: str | None,
        prompt: str,
        seed: float | None = None,
        more: Files = None,
        max_pixels: float | None = None,
    ) -> Question:
        """The picture of a file, those after it, and a prompt.

        A `max_pixels` of 0 is none. Raises `ImageError`, `PromptError`, and `SettingsError` for a wrong one.
        """
        first, *others = _paths(path, more)
        image = open_image(first)
        scene = None if others else scene_in(image, _seed(seed))
        # An empty field of a form comes as 0 once it was drawn.
        pixels = whole_number("max_pixels", max_pixels) if max_pixels else None
        return Question(image, prompt, scene, Path(first).stem[:60], tuple(map(open_image, others)), pixels)

    def start(
        self,
        path: str | None,
        more: Files,
        prompt: str,
        policy_a: str,
        policy_b: str,
        reference: bool,
        seed: float | None,
        max_new_tokens: float | None,
        max_pixels: float | None,
        *values_and_owner: Any,
    ) -> str:
        """Start A, B (unless empty) and the uncompressed reference, on a picture and those after it.

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
            question = self.question(path, prompt, seed, more, max_pixels)
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

    def preview(
        self, path: str | None, more: Files, prompt: str, max_pixels: float | None = None
    ) -> PreparedPrompt | None:
        """What the model makes of the pictures, None without one. Raises as `question` does."""
        if not path and not more:
            return None
        prompt = prompt.strip() or self.workbench.prompt
        return self.workbench.prepare(self.question(path, prompt, more=more, max_pixels=max_pixels))

    def choose_model(self, name: str) -> str:
        """Switch to another of the server's models; the answer is empty, or why that is refused."""
        try:
            self.workbench.choose(name)
        except ScopeError as error:
            return str(error)
        return ""

    def first_values(self, name: str, prompt: str, preset: str, *main: float) -> list[Any]:
        """What a person begins with on a model: prompt, preset, and the main settings under it.

        What they wrote themselves stays: a prompt, or settings that are not those of the preset.
        """
        source = self.workbench.models.source(name)
        if not prompt.strip() or prompt in FIRST_PROMPTS:
            prompt = first_prompt(source)
        if list(main) == self.preset_values(preset):
            preset = first_preset(source)
            main = tuple(self.preset_values(preset))
        return [prompt, preset, *main]

    def preset_values(self, preset: str) -> list[float]:
        """The values of a preset, for the controls of the main settings."""
        return list(PRESETS[preset].values())

    def reset(self) -> list[Any]:
        """A form as it was at first: preset, new tokens, every setting, none of B's own, no max_pixels."""
        preset = self.workbench.preset
        return [preset, NEW_TOKENS, *default_values(preset), *(None for _ in MAIN_SETTINGS), 0]

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


def _paths(path: str | None, more: Files) -> list[str]:
    """The files of a prompt's pictures in their order. Raises `ImageError` for none, and for too many."""
    paths = [path] if path else []
    paths += [item if isinstance(item, str) else item[0] for item in more or ()]
    if not paths:
        raise ImageError("there is no picture yet", "drop one, paste one, or pick an example")
    if len(paths) > MAX_PICTURES:  # before any is opened
        raise ImageError(f"{len(paths)} pictures are too many, the limit is {MAX_PICTURES}", "remove some")
    return paths


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
