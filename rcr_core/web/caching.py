"""Entity tags and byte ranges: what lets a browser keep an answer, and go on where a download broke off."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from rcr_core.web.refusal import Refusal

_TAG = re.compile(r'"[^"]*"')
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def tag_of(*parts: object) -> str:
    """A strong entity tag of what decides an answer's bytes."""
    return f'"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"'


def unchanged(request: Request, tag: str, headers: Mapping[str, str]) -> Response | None:
    """The answer 304 where the client holds the bytes of this tag, else None."""
    held = request.headers.get("If-None-Match", "")
    if held.strip() == "*" or tag in _TAG.findall(held):
        return Response(status_code=304, headers=headers)
    return None


def byte_range(request: Request, tag: str, size: int) -> tuple[int, int] | None:
    """The bytes [begin, end) that a request asks for; None means all of them.

    One range is served; what is malformed, or asks for several, is answered whole, as HTTP allows. A range
    beyond the end is refused.
    """
    asked = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if asked is None or request.headers.get("If-Range", tag) != tag:
        return None
    first, last = asked.groups()
    if not first and not last or first and last and int(first) > int(last):
        return None
    begin = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    if begin >= size:
        raise Refusal(416, f"there are only {size:,} bytes", headers={"Content-Range": f"bytes */{size}"})
    return begin, end
