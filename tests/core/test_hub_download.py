"""A model that comes from the hub: how far its download is, and what is said where it breaks.

The hub is a server on this machine that answers as the real one does.
"""

from __future__ import annotations

import errno
import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants, hf_api

from rcr_core.errors import BusyError, LoadError
from rcr_core.models import load_model
from rcr_core.models.failures import explained
from tests.core.checkpoints import refusal, serving

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHUNK = 1 << 16


class Hub(ThreadingHTTPServer):
    """Serves a folder as the repository somebody/tiny. After `cut` bytes of a file the network breaks."""

    folder: Path
    cut: int | None = None

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.address = f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        file = self.server.folder / path.rpartition("/")[2]
        files = sorted(self.server.folder.iterdir())
        if path.startswith("/api/models/somebody/tiny/tree"):
            listed = [
                {"type": "file", "path": one.name, "size": one.stat().st_size, "oid": one.name}
                for one in files
            ]
            self.send(json.dumps(listed).encode(), {}, body)
        elif path.startswith("/api/models/somebody/tiny"):
            told = {
                "id": "somebody/tiny",
                "sha": COMMIT,
                "siblings": [{"rfilename": one.name} for one in files],
            }
            self.send(json.dumps(told).encode(), {}, body)
        elif not file.is_file():
            self.send(b"", {"X-Error-Code": "EntryNotFound"}, body, status=404)
        else:
            data = file.read_bytes()
            tag = hashlib.sha256(data).hexdigest()
            self.send(data, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}, body)

    def send(self, data: bytes, headers: dict[str, str], body: bool, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data[: self.server.cut])
            self.close_connection = True
            if self.server.cut is not None and len(data) > self.server.cut:
                self.server.cut = 0  # from here on nothing comes through

    def log_message(self, *args) -> None:
        pass


@pytest.fixture(scope="module")
def server():
    """One for all tests, at one address: the hub's client remembers some of its addresses."""
    with serving(Hub()) as server:
        yield server


@pytest.fixture
def hub(server, tiny, tmp_path, monkeypatch):
    """The hub with a checkpoint of one file of weights."""
    server.folder, server.cut = tiny("qwen2_vl"), None
    template = f"{server.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(hf_api.api, "endpoint", server.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", CHUNK)
    return server


@pytest.mark.parametrize("files", ["one file", "shards"])
def test_bytes_are_told_and_then_tensors(files, hub, sharded):
    if files == "shards":
        hub.folder = sharded
    heard = []
    model = load_model("somebody/tiny", report=heard.append)
    assert (model.name, model.family) == ("somebody/tiny", "qwen2_vl")
    size = sum(file.stat().st_size for file in hub.folder.glob("*.safetensors"))
    told = [one for one in heard if one.stage == "download"]
    assert len(told) >= size / CHUNK - 1 > 2
    assert (told[-1].done, told[-1].total) == (size, size)
    done = [one.done for one in told]
    assert done == sorted(done)
    assert all(one.stage == "weights" for one in heard[heard.index(told[-1]) + 1 :])


def test_a_download_can_be_broken_off(hub):
    heard = []

    def report(progress):
        heard.append(progress)
        if progress.stage == "download":
            raise BusyError("another model was chosen meanwhile", "")

    with pytest.raises((BusyError, LoadError)):
        load_model("somebody/tiny", report=report)
    assert [one.stage for one in heard].count("download") == 1


def test_a_connection_that_breaks(hub):
    hub.cut = 3 * CHUNK  # more than any file but that of the weights
    error = refusal("somebody/tiny", "connection broke", "somebody/tiny")
    assert "goes on" in error.hint
    hub.cut = None
    assert load_model("somebody/tiny").family == "qwen2_vl"


@pytest.mark.parametrize(
    "error, words",
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no disk space left"),
        (ConnectionResetError(104, "Connection reset by peer"), "connection broke"),
        (OSError("Consistency check failed: file should be of size 9 but has size 3"), "connection broke"),
        (RuntimeError("Data processing error: CAS service error"), "connection broke"),
    ],
)
def test_what_breaks_a_download_is_explained(error, words):
    with pytest.raises(LoadError, match=words) as caught, explained("somebody/tiny", "weights"):
        raise error
    assert caught.value.hint
