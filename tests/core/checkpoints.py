"""What the tests of loading share: edit a JSON file, expect a refusal, stand in for the hub."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from rcr_core.errors import LoadError
from rcr_core.models import load_model


def edit(path: Path, **changes) -> None:
    """Replace entries of a JSON file; None removes one."""
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def refusal(source, *words: str, **options) -> LoadError:
    """Loading must raise `LoadError` in one sentence that holds `words`, with a hint."""
    with pytest.raises(LoadError) as caught:
        load_model(source, **options)
    error = caught.value
    for word in words:
        assert word in error.message, error.message
    assert error.hint
    assert "\n" not in error.message
    return error


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[ThreadingHTTPServer]:
    """A server that answers while this is open."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
