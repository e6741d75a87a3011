"""A real browser on a real server: Chromium, driven by Playwright; the bundled captioner is behind the page.

Every page fails its test on a console error, a script error, or a request to another host.
"""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import sync_playwright

import app
from rcr_core.runs import RunStore, StoreLimits
from tests.app.browser.synthetic import synthetic_trace

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-precise-memory-info",
]
SYNTHETIC = ("synthetic-rcr", "synthetic-bacon")


def pytest_collection_modifyitems(items):
    """Each test in the browser gets a second try, and the summary tells of it: many race with the clock."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="package")
def chromium():
    """The browser. It is part of what the tests need: without one they fail rather than pass unseen."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "install chromium: these tests drive a real browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def store():
    """The server's runs."""
    store = RunStore(StoreLimits())
    yield store
    store.close()


@pytest.fixture(scope="package")
def address(store):
    """Where the page is served; behind its examples stands a pair of large made ones."""
    options = app.parser().parse_args(["--port", str(free_port())])
    page = app.serve(options, store, prevent_thread_lock=True)
    for run_id in SYNTHETIC:
        trace = synthetic_trace(run_id.removeprefix("synthetic-"))
        store.add("", trace, label="synthetic", kind="example", public=True, run_id=run_id)
    yield page.local_url
    page.close()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Watched:
    """Pages whose errors and requests are noted."""

    def __init__(self, chromium, address: str):
        self.chromium = chromium
        self.host = urlsplit(address).netloc
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.contexts = []

    def context(self, **options):
        """A browser of its own: own storage, own owner token."""
        context = self.chromium.new_context(**{"viewport": {"width": 1400, "height": 1000}, **options})
        self.contexts.append(context)
        context.on("page", self._watch)
        return context

    def page(self, address: str):
        """A page in a browser of its own, ready for a person."""
        page = self.context().new_page()
        page.goto(address)
        page.wait_for_selector(".scope-transport")
        return page

    def _watch(self, page) -> None:
        page.on("pageerror", lambda error: self.errors.append(f"script: {error}"))
        page.on("console", lambda said: said.type == "error" and self.errors.append(f"console: {said.text}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def check(self) -> None:
        assert not self.errors, self.errors
        schemes = ("data:", "blob:", "about:")
        foreign = [
            url for url in self.requests if urlsplit(url).netloc != self.host and not url.startswith(schemes)
        ]
        assert not foreign, foreign


@pytest.fixture
def watched(chromium, address):
    watched = Watched(chromium, address)
    yield watched
    for context in watched.contexts:
        context.close()
    watched.check()


@pytest.fixture
def page(watched, address):
    """The page in a fresh browser, ready for a person."""
    return watched.page(address)
