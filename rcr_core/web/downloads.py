"""What a person takes home of a run: the trace file, the picture, figures, and tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rcr_core.runs import LiveRun, RunStore
from rcr_core.trace import Trace, trace_bytes
from rcr_core.web.caching import byte_range, tag_of, unchanged
from rcr_core.web.refusal import Refusal
from rcr_core.web.runs import readable, recorded

Drawing = Callable[[Trace], str]

_MAX_NAME = 80
_PACKED_AT_ONCE = 2  # files; each is in memory as a whole, as is its trace
_UNCLEAN = re.compile(r"[^A-Za-z0-9._-]+")


class DownloadRoutes:
    """figures, tables   by name: plotly JSON and CSV of a trace"""

    def __init__(self, store: RunStore, figures: Mapping[str, Drawing], tables: Mapping[str, Drawing]):
        self._store = store
        self._figures = figures
        self._tables = tables
        self._packing = CapacityLimiter(_PACKED_AT_ONCE)

    async def file(self, request: Request) -> Response:
        run = readable(self._store, request)
        return await to_thread.run_sync(_file, request, run, limiter=self._packing)

    async def image(self, request: Request) -> Response:
        return await run_in_threadpool(_image, request, readable(self._store, request))

    async def figure(self, request: Request) -> Response:
        run = readable(self._store, request)
        draw = _named(self._figures, request, "figure")
        return Response(await run_in_threadpool(_drawn, draw, run), media_type="application/json")

    async def table(self, request: Request) -> Response:
        run = readable(self._store, request)
        draw = _named(self._tables, request, "table")
        headers = attachment(f"{file_stem(run)}.{clean_name(request.path_params['name'])}.csv")
        return Response(await run_in_threadpool(_drawn, draw, run), media_type="text/csv", headers=headers)


def file_stem(run: LiveRun) -> str:
    """Label and policy, of A-Z a-z 0-9 . _ - only. The label of an opened file may already end in both."""
    label = clean_name(run.label.removesuffix(".rcr").removesuffix(f".{run.policy}"))
    return f"{label or 'run'}.{clean_name(run.policy) or 'policy'}"


def _image(request: Request, run: LiveRun) -> Response:
    trace = run.trace()
    if trace is None or not trace.image.size:
        raise Refusal(404, "this run has no picture")
    tag = tag_of(run.key, "image")  # it never changes; the id of a public run may come again with another
    headers = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "private, no-cache"}
    headers |= {"ETag": tag, "Vary": "X-Scope-Owner"}
    answer = unchanged(request, tag, headers)
    return answer or Response(trace.pictures[0].tobytes(), media_type="image/png", headers=headers)


def _file(request: Request, run: LiveRun) -> Response:
    trace = recorded(run)
    # What was recorded never changes, so these few decide every byte; the id of a public run may come again.
    tag = tag_of(run.key, trace.steps, trace.meta.to_json())
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "X-Scope-Owner"}
    if answer := unchanged(request, tag, headers):
        return answer
    packed = memoryview(trace_bytes(trace))
    headers |= {"Accept-Ranges": "bytes", **attachment(f"{file_stem(run)}.rcr")}
    asked = byte_range(request, tag, len(packed))
    if asked is None:
        return Response(packed, media_type="application/octet-stream", headers=headers)
    begin, end = asked
    headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(packed)}"
    piece = bytes(packed[begin:end])  # a view would keep the whole file until a slow reader has its part
    return Response(piece, 206, headers, "application/octet-stream")


def _named(drawings: Mapping[str, Drawing], request: Request, kind: str) -> Drawing:
    name = request.path_params["name"]
    if name not in drawings:
        raise Refusal(404, f"there is no such {kind}", f"there are: {', '.join(drawings)}")
    return drawings[name]


def _drawn(draw: Drawing, run: LiveRun) -> str:
    return draw(recorded(run))


def clean_name(name: str) -> str:
    """A name for a file, of A-Z a-z 0-9 . _ - only; it may come out empty."""
    return _UNCLEAN.sub("-", name)[:_MAX_NAME].strip(".-")


def attachment(name: str) -> dict[str, str]:
    """The headers of a file that is to be saved under this name."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
