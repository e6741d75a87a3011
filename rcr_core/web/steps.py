"""The steps of a run while it goes on: a request may wait for news, and holds no thread while it does."""

from __future__ import annotations

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rcr_core.runs import LiveRun, RunStore
from rcr_core.web.access import caller_of
from rcr_core.web.batches import batch, stamp
from rcr_core.web.query import seconds, whole
from rcr_core.web.runs import readable

MAX_WAIT = 10.0  # seconds
_POLL = 0.025


class StepRoutes:
    def __init__(self, store: RunStore):
        self._store = store

    async def steps(self, request: Request) -> Response:
        run = readable(self._store, request)
        since = whole(request, "from", default=0)
        wait = seconds(request, "wait", MAX_WAIT)
        known = request.query_params.get("stamp", stamp(run))
        if wait and since <= run.steps:
            await _news(request, run, since, known, wait)
        packed = await run_in_threadpool(batch, run, since, caller_of(request).owner)
        return Response(packed, media_type="application/octet-stream")


async def _news(request: Request, run: LiveRun, since: int, known: str, wait: float) -> None:
    """Returns once the run has more steps than `since`, stands otherwise than `known`, or has ended.

    Or after `wait` seconds, or when the one who asked is gone.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + wait
    while run.steps <= since and not run.finished and stamp(run) == known:
        if clock() >= until or await request.is_disconnected():
            return
        await asyncio.sleep(_POLL)
