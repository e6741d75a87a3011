"""A table as JSON lines: one object a line, UTF-8."""

from __future__ import annotations

import json
from pathlib import Path

from rcr_core.errors import StudyError
from rcr_core.study.data.pictures import printable
from rcr_core.study.data.sample import Source
from rcr_core.study.data.table import TableRow, table_source


def json_lines_source(path: Path) -> Source:
    """A person's own table. Raises `StudyError` where it is not UTF-8, and on a line that is no object."""
    name = printable(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError(
            f"{name} is not UTF-8 (byte {error.start} is not)", "save it with that encoding"
        ) from None
    except OSError as error:
        raise StudyError(f"{name} cannot be read: {error.strerror}", "check its permissions") from None
    # Not `splitlines`, which also ends a line at characters that JSON texts may hold.
    lines = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return table_source(path, [_row(name, place, line) for place, line in lines])


def _row(name: str, place: str, line: str) -> TableRow:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise StudyError(f"{place} of {name} is not JSON", "write one object a line") from None
    if not isinstance(values, dict):
        raise StudyError(f"{place} of {name} is no JSON object", 'write {"image": "a.png", ...}')
    return TableRow(place, values)
