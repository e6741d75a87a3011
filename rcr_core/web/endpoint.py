"""One address of the interface: what stands before every handler and what every answer carries."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rcr_core.errors import ScopeError
from rcr_core.web.access import check_site
from rcr_core.web.refusal import Refusal, error_response

Handler = Callable[[Request], Awaitable[Response]]

_log = logging.getLogger(__name__)


class Endpoint:
    """A handler per HTTP method. Errors become JSON; nothing is cached but where the handler says so.

    allowed   whether the request comes from someone who is logged in (or needs no login)
    """

    def __init__(self, allowed: Callable[[Request], bool], **handlers: Handler):
        if "GET" in handlers:
            handlers["HEAD"] = handlers["GET"]
        self._allowed = allowed
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Content-Type-Options"] = "nosniff"
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handler(request)(request)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except ScopeError as error:
            return error_response(error)
        except Exception as error:
            _log.exception("%s %r failed", request.method, request.scope["path"])
            return error_response(
                Refusal(500, f"the server failed: {type(error).__name__}", "its log says more")
            )

    def _handler(self, request: Request) -> Handler:
        if not self._allowed(request):
            raise Refusal(401, "you are not logged in", "open the page and log in")
        check_site(request)
        if not self._handlers:
            raise Refusal(404, "there is no such address")
        if request.method not in self._handlers:
            allow = ", ".join(sorted(self._handlers))
            raise Refusal(405, "this address cannot do that", f"it can: {allow}", {"Allow": allow})
        return self._handlers[request.method]
