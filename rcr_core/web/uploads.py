"""Opening a trace file: taken from the request piece by piece, checked, and put beside the runs."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rcr_core.errors import TraceError
from rcr_core.runs import LiveRun, RunStore
from rcr_core.trace import read_trace
from rcr_core.web.access import owner_of
from rcr_core.web.claims import shown_scene
from rcr_core.web.refusal import Refusal
from rcr_core.web.runs import described

_MAX_LABEL = 80
_MAX_DIGITS = 18
_FILES_AT_ONCE = 2  # of the greatest size; any number of smaller ones


class UploadRoutes:
    """`max_bytes` is of one file."""

    def __init__(self, store: RunStore, max_bytes: int):
        self._store = store
        self._max_bytes = max_bytes
        self._arriving = 0  # bytes of all files that come or are read, which the store does not know of yet

    async def upload(self, request: Request) -> Response:
        owner = owner_of(request)
        label = clean_label(request.query_params.get("label", ""))
        data = await self._body(request)
        try:
            run = await run_in_threadpool(self._add, owner, label, data)
        finally:
            self._arriving -= len(data)
        return JSONResponse(await run_in_threadpool(described, self._store, run, owner), 201)

    async def _body(self, request: Request) -> bytes:
        """The file, whose bytes still count as arriving."""
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
        return Refusal(413, f"the file has more than {self._max_bytes:,} bytes", "record fewer steps")

    def _add(self, owner: str, label: str, data: bytes) -> LiveRun:
        try:
            trace = read_trace(data, self._max_bytes)
        except TraceError as error:
            raise Refusal(415, error.message, error.hint) from None
        return self._store.add(owner, trace, label=label, scene=shown_scene(trace))


def clean_label(label: str) -> str:
    """A name to show, of printable characters only (none of those that turn the direction of writing)."""
    return "".join(char for char in label if char.isprintable()).strip()[:_MAX_LABEL].strip() or "trace"
