"""Opening a trace file: taken from the request piece by piece, checked, and put beside the runs."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rcr_core.errors import TraceError
from rcr_core.runs import LiveRun, RunStore
from rcr_core.trace import read_trace
from rcr_core.web.access import owner_of
from rcr_core.web.bodies import Bodies
from rcr_core.web.claims import shown_scene
from rcr_core.web.refusal import Refusal
from rcr_core.web.runs import described

_MAX_LABEL = 80


class UploadRoutes:
    """`max_bytes` is of one file."""

    def __init__(self, store: RunStore, max_bytes: int):
        self._store = store
        self._max_bytes = max_bytes
        self._bodies = Bodies(max_bytes, "record fewer steps")

    async def upload(self, request: Request) -> Response:
        owner = owner_of(request)
        label = clean_label(request.query_params.get("label", ""))
        async with self._bodies.of(request) as data:
            run = await run_in_threadpool(self._add, owner, label, data)
        return JSONResponse(await run_in_threadpool(described, self._store, run, owner), 201)

    def _add(self, owner: str, label: str, data: bytes) -> LiveRun:
        try:
            trace = read_trace(data, self._max_bytes)
        except TraceError as error:
            raise Refusal(415, error.message, error.hint) from None
        return self._store.add(owner, trace, label=label, scene=shown_scene(trace))


def clean_label(label: str, default: str = "trace") -> str:
    """A name to show, of printable characters only (none of those that turn the direction of writing)."""
    return "".join(char for char in label if char.isprintable()).strip()[:_MAX_LABEL].strip() or default
