"""The runs as a list and one by one: what there is, how it stands, and its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rcr_core.runs import LiveRun, RunStore
from rcr_core.runs.summary import reference_of, summary
from rcr_core.trace import Trace
from rcr_core.web.access import caller_of, owner_of
from rcr_core.web.refusal import Refusal


def readable(store: RunStore, request: Request) -> LiveRun:
    """The run that the address names, if the one who asks may read it."""
    caller = caller_of(request)
    return store.get(request.path_params["id"], caller.owner, caller.key)


def recorded(run: LiveRun) -> Trace:
    """The trace as far as the run has come; a run that has none yet is a `Refusal`."""
    trace = run.trace()
    if trace is None:
        raise Refusal(409, "this run has no trace", run.error.hint if run.error else "wait until it decodes")
    return trace


def described(store: RunStore, run: LiveRun, owner: str) -> dict[str, Any]:
    """The summary of a run, for an owner who may read it."""
    return summary(run, owner, reference_of(store, run))


class RunRoutes:
    """server   facts about the server that the list of runs carries along"""

    def __init__(self, store: RunStore, server: Callable[[], dict[str, Any]]):
        self._store = store
        self._server = server

    async def list(self, request: Request) -> Response:
        owner = owner_of(request)
        return JSONResponse(await run_in_threadpool(self._listed, owner))

    async def one(self, request: Request) -> Response:
        run = readable(self._store, request)
        owner = caller_of(request).owner
        return JSONResponse(await run_in_threadpool(described, self._store, run, owner))

    async def stop(self, request: Request) -> Response:
        run, owner = self._own(request)
        run.stop()
        return JSONResponse(await run_in_threadpool(described, self._store, run, owner))

    async def drop(self, request: Request) -> Response:
        run, owner = self._own(request)
        self._store.drop(run.id, owner)
        return Response(status_code=204)

    def _listed(self, owner: str) -> dict[str, Any]:
        runs = [described(self._store, run, owner) for run in self._store.list(owner)]
        return {"runs": runs, "server": self._server()}

    def _own(self, request: Request) -> tuple[LiveRun, str]:
        owner = owner_of(request)
        run = self._store.get(request.path_params["id"], owner)
        if run.owner != owner:
            raise Refusal(403, "this run is for everyone", "only its owner can stop or remove it")
        return run, owner
