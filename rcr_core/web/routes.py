"""The addresses of the interface, to be given to whatever serves the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from rcr_core.runs import RunStore
from rcr_core.trace import MAX_TRACE_BYTES
from rcr_core.web.downloads import DownloadRoutes, Drawing
from rcr_core.web.endpoint import Endpoint, Handler
from rcr_core.web.front import FrontRoutes
from rcr_core.web.layers import LayerRoutes
from rcr_core.web.runs import RunRoutes
from rcr_core.web.steps import StepRoutes
from rcr_core.web.studies import StudyRoutes
from rcr_core.web.uploads import UploadRoutes


def scope_routes(
    store: RunStore,
    *,
    allowed: Callable[[Request], bool],
    front: Path,
    front_version: str,
    plotly_js: Path,
    figures: Mapping[str, Drawing],
    tables: Mapping[str, Drawing],
    server: Callable[[], dict[str, Any]],
    studies: StudyRoutes | None = None,
    max_trace_bytes: int = MAX_TRACE_BYTES,
) -> list[BaseRoute]:
    """Every route under /scope, the last of which answers what the others do not know.

    allowed          whether a request comes from someone who is logged in (or needs no login)
    front            the folder of the front end, and the version that its modules' addresses have now
    plotly_js        the file of plotly's bundle
    figures, tables  by name: a trace's plotly JSON, and its CSV
    server           facts about the server, told with the list of runs
    studies          where the server has studies: what answers for them
    """
    files = FrontRoutes(front, front_version, plotly_js)
    runs, steps, layers = RunRoutes(store, server), StepRoutes(store), LayerRoutes(store)
    uploads, downloads = UploadRoutes(store, max_trace_bytes), DownloadRoutes(store, figures, tables)

    def route(path: str, **handlers: Handler) -> BaseRoute:
        return Route(f"/scope/{path}", Endpoint(allowed, **handlers))

    return [
        route("front/{version}/{path:path}", GET=files.front),
        route("plotly.min.js", GET=files.plotly),
        route("runs", GET=runs.list, POST=uploads.upload),
        route("runs/{id}", GET=runs.one, DELETE=runs.drop),
        route("runs/{id}/stop", POST=runs.stop),
        route("runs/{id}/steps", GET=steps.steps),
        route("runs/{id}/layers", GET=layers.layers),
        route("runs/{id}/trace.rcr", GET=downloads.file),
        route("runs/{id}/image", GET=downloads.image),
        route("runs/{id}/figures/{name}", GET=downloads.figure),
        route("runs/{id}/tables/{name}.csv", GET=downloads.table),
        *_of_studies(route, studies),
        route("{path:path}"),
    ]


def _of_studies(route: Callable[..., BaseRoute], studies: StudyRoutes | None) -> list[BaseRoute]:
    if studies is None:
        return []
    found = studies.findings
    return [
        route("studies", GET=studies.list, POST=studies.start),
        route("studies/pictures", POST=studies.picture),
        route("studies/pictures/{picture}", DELETE=studies.forget_picture),
        route("studies/{id}", GET=studies.one, DELETE=studies.drop),
        route("studies/{id}/stop", POST=studies.stop),
        route("studies/{id}/rows", GET=found.rows),
        route("studies/{id}/rows/{key}/open", POST=studies.open),
        route("studies/{id}/tables", GET=found.tables),
        route("studies/{id}/tables/{section}/{name}.{suffix}", GET=found.table),
        route("studies/{id}/figures/{section}/{name}", GET=found.figure),
        route("studies/{id}/results.jsonl", GET=found.results),
        route("studies/{id}/report.html", GET=found.report),
    ]
