"""Numbers in a request's query, each checked before it is used."""

from __future__ import annotations

import re

from starlette.requests import Request

from rcr_core.web.refusal import Refusal

_WHOLE = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?")


def whole(request: Request, name: str, default: int | None = None) -> int:
    """A whole number, 0 or more; one without a default must be there."""
    value = request.query_params.get(name)
    if value is None and default is not None:
        return default
    if value is None or not _WHOLE.fullmatch(value):
        got = "nothing" if value is None else repr(value[:40])
        raise Refusal(400, f"{name} must be a whole number, 0 or more, got {got}")
    return int(value)


def seconds(request: Request, name: str, most: float) -> float:
    """A number of seconds in [0, most]; 0 where it is not given."""
    value = request.query_params.get(name, "0")
    if not _DECIMAL.fullmatch(value) or float(value) > most:
        raise Refusal(400, f"{name} must be a number of seconds in [0, {most:g}], got {value[:40]!r}")
    return float(value)
