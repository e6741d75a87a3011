"""The metadata of a trace: what was run, on which model, under which settings, and the text that came out."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rcr_core.errors import TraceError
from rcr_core.trace import checks

SCHEMA = "1.2"
_SINCE = {"scene": (1, 1), "top_text": (1, 1)}  # fields that files of earlier versions lack
STOP_REASONS = ("stop token", "length", "stopped", "error", "")  # "" while the run goes on
_MAX_LENGTH = (1 << 31) - 1  # positions are i32
_MAX_DIM = 1 << 16
_MAX_EXACT = (1 << 53) - 1  # what any JSON reader can hold exactly
_SCENE = ("seed", "grid", "count")


def _field(check, **default):
    return field(metadata={"check": check}, **default)


def _check_fields(record: Any, prefix: str = "") -> None:
    for spec in fields(record):
        value = spec.metadata["check"](prefix + spec.name, getattr(record, spec.name))
        object.__setattr__(record, spec.name, value)


@dataclass(frozen=True)
class PromptPiece:
    """A run of prompt tokens: one text token, or one run of image placeholders collapsed.

    `start` is the prompt index of its first token, `count` how many tokens it stands for.
    """

    text: str = _field(checks.text)
    start: int = _field(checks.count(0, _MAX_LENGTH))
    count: int = _field(checks.count(1, _MAX_LENGTH))
    kind: str = _field(checks.choice("text", "image"))

    def __post_init__(self):
        _check_fields(self, "prompt_pieces.")


def _pieces(name: str, value: Any) -> tuple[PromptPiece, ...]:
    pieces = tuple(_piece(name, item) for item in checks.sequence(name, value))
    checks.texts(name, [piece.text for piece in pieces])
    end = 0
    for piece in pieces:
        if piece.start < end:
            raise TraceError(f"{name} must be in order and not overlap, see prompt index {piece.start}")
        end = piece.start + piece.count
    return pieces


def _piece(name: str, value: Any) -> PromptPiece:
    if isinstance(value, PromptPiece):
        return value
    names = {spec.name for spec in fields(PromptPiece)}
    if not isinstance(value, dict) or set(value) != names:
        raise TraceError(f"{name} must hold pieces of {', '.join(sorted(names))}")
    return PromptPiece(**value)


def _sizes(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    side = checks.count(1, _MAX_LENGTH)
    sizes = [checks.sequence(name, item) for item in checks.sequence(name, value)]
    if any(len(item) != 2 for item in sizes):
        raise TraceError(f"{name} must hold (height, width) pairs")
    return tuple((side(name, height), side(name, width)) for height, width in sizes)


def _timings(name: str, value: Any) -> dict[str, Any]:
    timings = checks.mapping(name, value)
    if "prefill" not in timings or "steps" not in timings:
        raise TraceError(f"{name} must hold 'prefill' and 'steps'")
    steps = checks.sequence(f"{name}.steps", timings.pop("steps"))
    rest = {key: checks.seconds(f"{name}.{key}", item) for key, item in timings.items()}
    return {**rest, "steps": [checks.seconds(f"{name}.steps", item) for item in steps]}


def _versions(name: str, value: Any) -> dict[str, str]:
    versions = checks.mapping(name, value)
    return {key: checks.text(f"{name}.{key}", item) for key, item in versions.items()}


def _scene(name: str, value: Any) -> dict[str, int] | None:
    if value is None:
        return None
    scene = checks.mapping(name, value)
    if set(scene) != set(_SCENE):
        raise TraceError(f"{name} must hold {', '.join(_SCENE)}")
    return {key: checks.count(0, _MAX_EXACT)(f"{name}.{key}", scene[key]) for key in _SCENE}


def _schema(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", value):
        raise TraceError(f"{name} must be a version such as {SCHEMA!r}", "the file is damaged")
    if value.split(".")[0] != SCHEMA.split(".")[0]:
        raise TraceError(
            f"trace version {value} is not known", f"this release reads {SCHEMA}; use a matching one"
        )
    return value


def _upgraded(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a file of an earlier minor version, with the defaults of those that are new since."""
    version = tuple(map(int, values["schema"].split(".")))
    if version >= tuple(map(int, SCHEMA.split("."))):
        return values
    newer = {name for name, since in _SINCE.items() if since > version}
    defaults = {spec.name: spec.default for spec in fields(TraceMeta) if spec.name in newer}
    return {**defaults, **values, "schema": SCHEMA}


@dataclass(frozen=True, kw_only=True)
class TraceMeta:
    """What a person and a figure need to know about a run beside its arrays.

    Lists are kept as tuples. `token_text` has one entry per generated token, None where the token completed
    no character; `top_text` has the names of the K likeliest tokens of each step, or is empty.
    `scene` is the bundled scene that the picture shows, if any. `timings` holds seconds: `prefill` (step 0),
    `steps` (steps 1 to N - 1, or empty), others by name; nothing outside `timings` depends on the clock.
    Raises `TraceError` naming the field.
    """

    schema: str = _field(_schema, default=SCHEMA)
    model: str = _field(checks.text)
    family: str = _field(checks.text)
    processor: str = _field(checks.text)
    prompt: str = _field(checks.text)
    prompt_pieces: tuple[PromptPiece, ...] = _field(_pieces)
    policy: str = _field(checks.text)
    settings: dict[str, Any] = _field(checks.mapping)
    edits: tuple[dict[str, Any], ...] = _field(checks.mappings, default=())
    image_size: tuple[tuple[int, int], ...] = _field(_sizes)  # (height, width) of each original image
    prompt_length: int = _field(checks.count(1, _MAX_LENGTH))  # T
    prefix_length: int = _field(checks.count(0, _MAX_LENGTH))  # Np
    window: int = _field(checks.count(0, _MAX_LENGTH))  # W
    layers: int = _field(checks.count(1, _MAX_DIM))  # L
    kv_heads: int = _field(checks.count(1, _MAX_DIM))  # H
    query_groups: int = _field(checks.count(1, _MAX_DIM))  # G
    head_dim: int = _field(checks.count(1, _MAX_DIM))  # D
    select: int = _field(checks.count(0, _MAX_LENGTH))  # S
    managed: tuple[bool, ...] = _field(checks.flags)  # [L]
    token_text: tuple[str | None, ...] = _field(checks.texts_or_none, default=())  # [N]
    top_text: tuple[tuple[str, ...], ...] = _field(checks.token_names, default=())  # [N, K]
    scene: dict[str, int] | None = _field(_scene, default=None)  # seed, grid, count
    stop_reason: str = _field(checks.choice(*STOP_REASONS), default="")
    dtype: str = _field(checks.text, default="")
    device: str = _field(checks.text, default="")
    notes: tuple[str, ...] = _field(checks.texts, default=())
    timings: dict[str, Any] = _field(_timings, default_factory=lambda: {"prefill": 0.0, "steps": []})
    versions: dict[str, str] = _field(_versions, default_factory=dict)

    def __post_init__(self):
        _check_fields(self)
        if len(self.managed) != self.layers:
            raise TraceError(f"managed must have {self.layers} entries, one a layer, got {len(self.managed)}")
        if self.prefix_length != max(self.prompt_length - self.window, 0):
            raise TraceError(f"prefix_length must be prompt_length - window, got {self.prefix_length}")
        if self.prompt_pieces:
            last = self.prompt_pieces[-1]
            if last.start + last.count > self.prompt_length:
                raise TraceError(f"prompt_pieces must end within prompt_length ({self.prompt_length})")
        if len(self.timings["steps"]) not in (0, max(len(self.token_text) - 1, 0)):
            raise TraceError("timings.steps must be empty or have one entry per step after the prefill")
        if len(self.top_text) not in (0, len(self.token_text)):
            raise TraceError("top_text must be empty or have one entry per generated token")

    def to_json(self) -> str:
        """JSON with sorted keys: equal metadata gives equal text."""
        values = asdict(self)
        return json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> TraceMeta:
        """The metadata that `to_json` wrote. Raises `TraceError` naming a missing, unknown or wrong field."""
        values = checks.parse_json("the metadata", text)
        if not isinstance(values, dict):
            raise TraceError("the metadata must be a JSON object")
        if "schema" in values:  # first, because another version explains every other difference
            _schema("schema", values["schema"])
            values = _upgraded(values)
        known = {spec.name for spec in fields(cls)}
        if missing := sorted(known - set(values)):
            raise TraceError(f"the metadata lacks the field {missing[0]!r}")
        if unknown := sorted(set(values) - known):
            name = unknown[0][:60]
            raise TraceError(f"the metadata has an unknown field {name!r}", "written by a newer release?")
        return cls(**values)
