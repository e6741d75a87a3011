"""What a request is refused with: an HTTP status beside the message and the hint."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse

from rcr_core.errors import ScopeError, StoreFullError, UnknownRunError, UnknownStudyError

_STATUS = {UnknownRunError: 404, UnknownStudyError: 404, StoreFullError: 429}


class Refusal(ScopeError):
    """A request that cannot be answered, and the HTTP status that says so."""

    def __init__(self, status: int, message: str, hint: str = "", headers: Mapping[str, str] | None = None):
        super().__init__(message, hint)
        self.status = status
        self.headers = headers


def error_response(error: ScopeError) -> JSONResponse:
    """The JSON of an error; one that names no status of its own is a request that cannot be carried out."""
    body = {"error": error.message, "hint": error.hint}
    if isinstance(error, Refusal):
        return JSONResponse(body, error.status, headers=error.headers)
    return JSONResponse(body, _STATUS.get(type(error), 409))
