"""Who asks: the owner token of a browser, the key of one run, and whether another site's page is asking.

A token or a key is the whole permission. Neither is a cookie, so a page of another site cannot use them; the
login is one, therefore requests that other sites' pages make are refused wherever the browser tells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.requests import Request

from rcr_core.web.refusal import Refusal

OWNER_HEADER = "X-Scope-Owner"
READING = ("GET", "HEAD")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}")


@dataclass(frozen=True)
class Caller:
    """`owner` is the token of the browser that asks, `key` that of the one run it asks for; one may be ''."""

    owner: str
    key: str = ""


def owner_of(request: Request) -> str:
    """The owner token in the header, which no form and no link can send."""
    token = request.headers.get(OWNER_HEADER)
    if token is None:
        raise Refusal(400, f"the header {OWNER_HEADER} is missing", "it says whose runs are meant")
    if not _TOKEN.fullmatch(token):
        raise Refusal(400, f"{OWNER_HEADER} must be 16 to 64 of the characters A-Z a-z 0-9 _ -")
    return token


def caller_of(request: Request) -> Caller:
    """Who wants to read one run: its key is enough, for links and pictures that can send no header."""
    key = request.query_params.get("key", "")
    if key and OWNER_HEADER not in request.headers:
        return Caller("", key)
    return Caller(owner_of(request), key)


def check_site(request: Request) -> None:
    """Refuse what a page of another site asks for; following a link to here is no such request."""
    headers = request.headers
    if headers.get("Sec-Fetch-Site") != "cross-site":
        return
    if request.method not in READING or headers.get("Sec-Fetch-Mode") != "navigate":
        raise Refusal(403, "this request comes from another site", "open the page itself")
