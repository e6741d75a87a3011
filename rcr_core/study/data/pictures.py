"""The bytes of pictures, from their own files or from a cell of a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rcr_core.errors import StudyError

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")


def printable(path: Path) -> str:
    """The name of a file or folder as text, also where its bytes are not UTF-8."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def picture_in_file(path: Path, sample: str) -> bytes:
    """Raises `StudyError` where the picture of a sample is missing or cannot be read."""
    try:
        if path.exists() and not path.is_file():
            raise StudyError(f"the picture of sample {sample!r} is not a file: {path}", "check the path")
        return path.read_bytes()
    except FileNotFoundError:
        raise StudyError(
            f"the picture of sample {sample!r} is missing: {path}",
            "was it moved? Paths in a table are relative to the table",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise StudyError(f"the picture of sample {sample!r} cannot be read: {error}", "check it") from None


def picture_in_cell(value: Any, sample: str) -> bytes:
    """The bytes in a cell: as they are, or under "bytes" as the hub stores images. Raises `StudyError`."""
    data = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(data, bytes) or not data:
        raise StudyError(f"sample {sample!r} has no picture in it", "its image cell holds no bytes")
    return data
