"""The maps of every layer, a page of steps at a time: too much to send along with every step."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rcr_core.runs import LiveRun, RunStore
from rcr_core.web.caching import tag_of, unchanged
from rcr_core.web.packing import pack
from rcr_core.web.query import whole
from rcr_core.web.refusal import Refusal
from rcr_core.web.runs import readable, recorded

FORMAT = "rcr-layers"
MAX_ROWS = 64
_ASK_AGAIN = "private, no-cache"
_FOR_GOOD = "private, max-age=31536000, immutable"
_MAPS = ("map_layer", "missed_layer", "map_head", "map_full")
LAYER_ARRAYS = tuple(name + end for name in _MAPS for end in ("", "_scale"))


class LayerRoutes:
    def __init__(self, store: RunStore):
        self._store = store

    async def layers(self, request: Request) -> Response:
        run = readable(self._store, request)
        begin, end = whole(request, "from"), whole(request, "to")
        if not begin < end <= begin + MAX_ROWS:
            raise Refusal(416, f"a page has 1 to {MAX_ROWS} steps, got from={begin} to={end}")
        return await run_in_threadpool(_page, request, run, begin, end)


def _page(request: Request, run: LiveRun, begin: int, end: int) -> Response:
    """The steps [begin, end). A step that is recorded never changes, so most pages may be kept for good."""
    trace = recorded(run)
    if end > trace.steps:
        raise Refusal(416, f"the run has {trace.steps} steps so far, got to={end}")
    tag = tag_of(run.key, begin, end)  # a public run's id may name another trace after the next start
    caching = _ASK_AGAIN if run.public else _FOR_GOOD
    headers = {"ETag": tag, "Cache-Control": caching, "Vary": "X-Scope-Owner"}
    if answer := unchanged(request, tag, headers):
        return answer
    arrays = {name: array[begin:end] for name, array in trace.arrays().items() if name in LAYER_ARRAYS}
    packed = pack(FORMAT, {"id": run.id, "from": begin, "to": end}, arrays)
    return Response(packed, media_type="application/octet-stream", headers=headers)
