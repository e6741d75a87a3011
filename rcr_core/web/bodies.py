"""Files that come with a request: taken piece by piece, bounded one by one and all together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from rcr_core.web.refusal import Refusal

_MAX_DIGITS = 18
_FILES_AT_ONCE = 2  # of the greatest size; any number of smaller ones


class Bodies:
    """`max_bytes` is of one file; `hint` says what to do about a larger one."""

    def __init__(self, max_bytes: int, hint: str):
        self._max_bytes = max_bytes
        self._hint = hint
        self._arriving = 0  # bytes of all files that come or are used, which nobody else knows of yet

    @asynccontextmanager
    async def of(self, request: Request) -> AsyncIterator[bytes]:
        """The file of a request, whose bytes count as arriving for as long as it is used."""
        data = await self._read(request)
        try:
            yield data
        finally:
            self._arriving -= len(data)

    async def _read(self, request: Request) -> bytes:
        announced = request.headers.get("Content-Length", "")
        if announced.isdecimal() and (len(announced) > _MAX_DIGITS or int(announced) > self._max_bytes):
            raise self._too_large()
        pieces, size = [], 0
        try:
            async for piece in request.stream():
                size += len(piece)
                self._arriving += len(piece)
                self._check(size)
                pieces.append(piece)
            return b"".join(pieces)
        except BaseException:
            self._arriving -= size
            raise

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise self._too_large()
        if self._arriving > _FILES_AT_ONCE * self._max_bytes:
            raise Refusal(503, "too much is being opened at once", "try again in a minute")

    def _too_large(self) -> Refusal:
        return Refusal(413, f"the file has more than {self._max_bytes:,} bytes", self._hint)
