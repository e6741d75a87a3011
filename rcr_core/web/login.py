"""The login of the page, which the routes beside it ask for too."""

from __future__ import annotations

from starlette.requests import Request


def logged_in(request: Request) -> bool:
    """Whether a request comes with the login of the page; always where there is none to give."""
    served = request.app
    if served.auth is None and served.auth_dependency is None:
        return True
    cookies = (f"access-token-{served.cookie_id}", f"access-token-unsecure-{served.cookie_id}")
    return any(served.tokens.get(request.cookies.get(name)) is not None for name in cookies)
