"""The browser gets the front end's files as they are now, and nothing that lies outside their folder."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from tests.app.web_samples import OWNER
from viz.front import version_of


def test_files_come_with_their_types(client):
    script = client.get("/scope/front/v1/main.js")
    assert script.text == "export const ready = true;\n"
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    style = client.get("/scope/front/v1/views/scope.css")
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    kept = "public, max-age=31536000, immutable"
    assert script.headers["cache-control"] == style.headers["cache-control"] == kept


def test_a_page_of_another_version_gets_the_files_of_today_and_keeps_none(client, front):
    first = client.get("/scope/front/v0/main.js")
    assert (first.text, first.headers["cache-control"]) == ("export const ready = true;\n", "no-cache")
    held = {"If-None-Match": first.headers["etag"]}
    assert client.get("/scope/front/v0/main.js", headers=held).status_code == 304
    (front / "main.js").write_text("export const ready = false;")
    changed = client.get("/scope/front/v0/main.js", headers=held)
    assert (changed.status_code, changed.text) == (200, "export const ready = false;")


def test_a_file_that_changed_since_the_start_is_not_what_its_version_names(client, front):
    path = front / "main.js"
    os.utime(path, (later := time.time() + 60, later))
    assert client.get("/scope/front/v1/main.js").headers["cache-control"] == "no-cache"


def test_other_modules_are_another_version(front):
    first = version_of(front)
    assert version_of(front) == first
    words = (front / "main.js").read_text()
    (front / "main.js").write_text(words + " ")
    assert version_of(front) != first
    (front / "main.js").write_text(words)
    assert version_of(front) == first
    (front / "main.js").rename(front / "views" / "main.js")
    assert version_of(front) != first


def test_plotly_is_kept_for_good_under_its_version(client):
    by_version = client.get("/scope/plotly.min.js?v=3.1")
    assert by_version.text == "/* plotly */"
    assert by_version.headers["content-type"] == "text/javascript; charset=utf-8"
    assert by_version.headers["cache-control"] == "public, max-age=31536000, immutable"
    plain = client.get("/scope/plotly.min.js")
    assert plain.headers["cache-control"] == "no-cache"
    held = {"If-None-Match": plain.headers["etag"]}
    assert client.get("/scope/plotly.min.js", headers=held).status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "../secret.js",
        "views/../../secret.js",
        "views/../main.js",
        "./main.js",
        "/main.js",
        "//main.js",
        "views//scope.css",
        "..\\secret.js",
        "views\\scope.css",
        "",
        "views",
        "views/",
        "nothing.js",
        "main.js/",
        "main.js\0",
        "main.js\n",
        "notes.txt",
        ".hidden.js",
        "leak.js",
        "C:main.js",
        "~/main.js",
        "%2e%2e/secret.js",
        "a" * 5000 + ".js",
        "a/" * 2500 + "a.js",
        "\udcff.js",
    ],
)
def test_nothing_else_is_found(routes, path):
    """Straight to the route, since a client would tidy the address before it is sent."""
    assert asked(routes(), path) == 404


def test_an_absolute_path_is_not_found(routes, front):
    assert asked(routes(), str(front / "main.js")) == 404
    assert asked(routes(), str(front.parent / "secret.js")) == 404


@pytest.mark.parametrize(
    "address",
    ["%2e%2e/secret.js", "..%2fsecret.js", "views%2f..%2f..%2fsecret.js", "%2fmain.js", "..%5csecret.js"],
)
def test_an_encoded_way_out_is_not_found(client, address):
    assert client.get(f"/scope/front/v1/{address}").status_code == 404


def asked(routes, path: str) -> int:
    """The status of GET /scope/front/v1/`path`."""
    sent = []
    route = next(route for route in routes if "front" in route.path)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/scope/front/v1/",
        "path_params": {"version": "v1", "path": path},
        "query_string": b"",
        "headers": [(b"x-scope-owner", OWNER.encode())],
    }

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    asyncio.run(route.app(scope, receive, send))
    return sent[0]["status"]
