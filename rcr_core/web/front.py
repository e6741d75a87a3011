"""The front end's files, and plotly's own bundle: nothing from outside their folder."""

from __future__ import annotations

import re
import time
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rcr_core.web.caching import tag_of, unchanged
from rcr_core.web.refusal import Refusal

_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".rcr": "application/octet-stream",
}
_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"  # no hidden file, no "..", no separator of another system
_PATH = re.compile(rf"({_NAME}/)*{_NAME}")
_MAX_PATH = 200
_ALWAYS_ASK = "no-cache"
_FOR_GOOD = "public, max-age=31536000, immutable"


class FrontRoutes:
    """folder      of the front end
    version     what its files are now: a browser keeps for good what it gets under this version
    plotly_js   the file of plotly's bundle
    """

    def __init__(self, folder: Path, version: str, plotly_js: Path):
        self._folder = folder.resolve()
        self._version = version
        self._plotly_js = plotly_js
        self._began = time.time()

    async def front(self, request: Request) -> Response:
        return await run_in_threadpool(self._front, request)

    async def plotly(self, request: Request) -> Response:
        # The page asks for it with plotly's version in the address: another version is another address.
        versioned = "v" in request.query_params
        return await run_in_threadpool(self._served, request, self._plotly_js, versioned)

    def _front(self, request: Request) -> Response:
        name = request.path_params["path"]
        if len(name) > _MAX_PATH or not _PATH.fullmatch(name):
            raise _no_file()
        path = self._folder / name
        if not path.resolve().is_relative_to(self._folder):  # a link in the folder may lead out of it
            raise _no_file()
        # A page from before the server was last started asks for files of another version, and gets today's.
        return self._served(request, path, request.path_params["version"] == self._version)

    def _served(self, request: Request, path: Path, versioned: bool) -> Response:
        """A file, for good where its address names its version, unless it was changed since the start."""
        if path.suffix not in _TYPES or not path.is_file():
            raise _no_file()
        state = path.stat()
        tag = tag_of(str(path), state.st_size, state.st_mtime_ns)
        caching = _FOR_GOOD if versioned and state.st_mtime <= self._began else _ALWAYS_ASK
        headers = {"ETag": tag, "Cache-Control": caching}
        answer = unchanged(request, tag, headers)
        return answer or Response(path.read_bytes(), media_type=_TYPES[path.suffix], headers=headers)


def _no_file() -> Refusal:
    return Refusal(404, "there is no such file")
