"""The page itself, compressed: it is most of what a first visit transfers."""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send


class CompressedPage:
    """Compresses the page alone: traces are sent in ranges, and events as they come."""

    def __init__(self, app: ASGIApp):
        self._plain, self._compressed = app, GZipMiddleware(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = scope["type"] == "http" and scope["path"].removeprefix(scope.get("root_path", "")) in ("", "/")
        await (self._compressed if page else self._plain)(scope, receive, send)
