"""Checks of the plain values in a trace's metadata.

Each check takes a field's name and value, and returns the value in the form in which JSON gives it back, so
that a trace that was read equals the one that was written. All raise `TraceError` and name the field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from rcr_core.errors import TraceError

MAX_TEXT_BYTES = 1 << 20  # of one field, all its texts together
MAX_NAME = 32  # characters of a token's name, so that five a step fit into the header of a file
_MAX_DEPTH = 8


def parse_json(name: str, text: str) -> Any:
    """What a JSON text holds. Bad JSON, or nesting that would exhaust the stack, is a `TraceError`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise TraceError(f"{name} is not valid JSON", "the file is damaged, or not a trace") from None


def sequence(name: str, value: Any) -> tuple:
    if not isinstance(value, list | tuple):
        raise TraceError(f"{name} must be a list, got {type(value).__name__}")
    return tuple(value)


def text(name: str, value: Any) -> str:
    return texts(name, [value])[0]


def texts(name: str, value: Any) -> tuple[str, ...]:
    values = sequence(name, value)
    if sum(_text_bytes(name, item) for item in values) > MAX_TEXT_BYTES:
        raise TraceError(f"{name} is longer than {MAX_TEXT_BYTES:,} bytes of text")
    return values


def texts_or_none(name: str, value: Any) -> tuple[str | None, ...]:
    values = sequence(name, value)
    texts(name, [item for item in values if item is not None])
    return values


def token_names(name: str, value: Any) -> tuple[tuple[str, ...], ...]:
    """Rows of equally many names of tokens."""
    rows = tuple(texts(f"{name}[{at}]", row) for at, row in enumerate(sequence(name, value)))
    if len({len(row) for row in rows}) > 1:
        raise TraceError(f"{name} must have equally many names at every step")
    if any(len(item) > MAX_NAME for row in rows for item in row):
        raise TraceError(f"{name} must hold names of at most {MAX_NAME} characters")
    return rows


def count(low: int, high: int) -> Callable[[str, Any], int]:
    """The check of a whole number in [low, high]."""

    def check(name: str, value: Any) -> int:
        if not isinstance(value, Integral) or isinstance(value, bool) or not low <= value <= high:
            raise TraceError(f"{name} must be a whole number in [{low}, {high}], got {_short(value)}")
        return int(value)

    return check


def choice(*options: str) -> Callable[[str, Any], str]:
    """The check of one of a few words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in options:
            raise TraceError(f"{name} must be one of {', '.join(map(repr, options))}, got {_short(value)}")
        return value

    return check


def flags(name: str, value: Any) -> tuple[bool, ...]:
    values = sequence(name, value)
    if not all(isinstance(item, bool | np.bool_) for item in values):
        raise TraceError(f"{name} must hold only true and false")
    return tuple(map(bool, values))


def seconds(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise TraceError(f"{name} must be a number of seconds, 0 or more, got {_short(value)}")
    return float(value)


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A dict of plain JSON values, copied."""
    if not isinstance(value, dict):
        raise TraceError(f"{name} must be a mapping, got {type(value).__name__}")
    return _bounded(name, _plain(name, value, 0))


def mappings(name: str, value: Any) -> tuple[dict[str, Any], ...]:
    return tuple(mapping(f"{name}[{at}]", item) for at, item in enumerate(sequence(name, value)))


def _plain(name: str, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(name, value)
    if isinstance(value, Real):
        return _number(name, value)
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return [_plain(f"{name}[{at}]", item, depth + 1) for at, item in enumerate(value)]
    if depth < _MAX_DEPTH and isinstance(value, dict):
        keys = texts(f"the keys of {name}", list(value))
        return {key: _plain(f"{name}.{key}", value[key], depth + 1) for key in keys}
    kind = type(value).__name__
    raise TraceError(f"{name} must be plain JSON, at most {_MAX_DEPTH} levels deep, got {kind}")


def _number(name: str, value: Real) -> int | float:
    if isinstance(value, Integral):
        return count(-(1 << 63), (1 << 63) - 1)(name, value)
    if not math.isfinite(value):
        raise TraceError(f"{name} must be finite, got {value}")
    return float(value)


def _bounded(name: str, value: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_TEXT_BYTES:
        raise TraceError(f"{name} is longer than {MAX_TEXT_BYTES:,} bytes of JSON")
    return value


def _text_bytes(name: str, value: Any) -> int:
    if not isinstance(value, str):
        raise TraceError(f"{name} must be text, got {type(value).__name__}")
    try:
        return len(value.encode())
    except UnicodeEncodeError:
        raise TraceError(f"{name} holds broken Unicode (half of a surrogate pair)") from None


def _short(value: Any) -> str:
    """`repr` for a message; long or hostile values by their type only."""
    if isinstance(value, int | float | str | np.number | None) and len(shown := repr(value)[:60]) < 60:
        return shown
    return type(value).__name__
