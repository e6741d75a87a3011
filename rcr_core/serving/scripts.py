"""What a script or an agent can ask of a server: start a run, wait for it, stop it, fetch its trace."""

from __future__ import annotations

import hmac
import secrets
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from rcr_core.captioning import CaptionRequest
from rcr_core.errors import ScopeError, SettingsError
from rcr_core.policies import POLICIES
from rcr_core.runs import LiveRun
from rcr_core.runs.summary import reference_of, summary
from rcr_core.serving.form import Form
from rcr_core.serving.presets import settings_from, whole_number
from rcr_core.trace import save_trace

LONGEST_WAIT = 600.0  # seconds
FILES = 16  # traces on disk; whoever serves one has copied it long before so many others are written


class Scripts:
    """Endpoints by run id and key. The first lines of their docstrings are what clients get to read."""

    def __init__(self, form: Form):
        self.form = form
        self.store = form.workbench.store
        self._folder = tempfile.TemporaryDirectory(prefix="rcr-scope-")
        self._writing = threading.Lock()
        self._secret = secrets.token_bytes(32)

    def list_policies(self) -> list[dict[str, str]]:
        """List the selection policies that a run can have: name, title, and what each does."""
        return [
            {"name": name, "title": policy.title, "summary": policy.summary}
            for name, policy in POLICIES.items()
        ]

    def list_models(self) -> dict[str, Any]:
        """List the models that a server can switch between, and how the chosen one stands."""
        return self.form.workbench.server()

    def choose_model(self, model: str) -> dict[str, Any]:
        """Switch a server to another of its models, for all. Returns at once; runs wait for the model."""
        self.form.workbench.choose(str(model))
        return self.list_models()

    def start_run(
        self,
        client: str,
        image: str,
        prompt: str,
        policy: str,
        settings: dict[str, Any] | None,
        max_new_tokens: float,
        more: list[str] | None = None,
        max_pixels: float | None = None,
    ) -> dict[str, str]:
        """Start decoding a caption of an image under a policy. Returns its id, and the key that reads it.

        `more` are further images for the prompt, in order; the frames of a video are sent as such. Images of
        more than `max_pixels` are scaled down first.
        The runs of one `client`, an address, are one owner's: its share of the queue and of the store.
        """
        count = whole_number("max_new_tokens", max_new_tokens)
        request = CaptionRequest(policy, settings_from(settings or {}), max_new_tokens=count)
        question = self.form.question(image, prompt or self.form.workbench.prompt, None, more, max_pixels)
        run = self.form.workbench.start(self._owner(client), question, request)
        return {"run": run.id, "key": run.key}

    def wait_for_run(self, run: str, key: str, timeout: float = 60.0) -> dict[str, Any]:
        """Wait until a run is over, or for so many seconds. Returns its state, numbers and text so far."""
        live = self._run(run, key)
        if not isinstance(timeout, int | float) or not timeout >= 0:
            raise SettingsError(f"timeout must be a number of seconds, 0 or more, got {timeout!r}")
        until = time.monotonic() + min(timeout, LONGEST_WAIT)
        while not live.finished and (left := until - time.monotonic()) > 0:
            live.wait(live.steps + 1, left)
        return self._told(live)

    def stop_run(self, run: str, key: str) -> dict[str, Any]:
        """Stop a run. What was decoded stays, and its trace can be fetched."""
        live = self._run(run, key)
        live.stop()
        return self._told(live)

    def fetch_trace(self, run: str, key: str) -> str:
        """Fetch the trace of a run as an .rcr file, as far as the run has come."""
        trace = self._run(run, key).trace()
        if trace is None:
            raise ScopeError("the run has no trace yet", "wait for it first")
        folder = Path(self._folder.name)
        path = folder / f"{run}.rcr"
        with self._writing:
            save_trace(trace, path)
            oldest_first = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
            for file in oldest_first[:-FILES]:
                file.unlink()
        return str(path)

    def _owner(self, client: str) -> str:
        """The owner token of a client, which nobody can guess: it would show all runs from that address."""
        return hmac.new(self._secret, client.encode(), "sha256").hexdigest()

    def _told(self, run: LiveRun) -> dict[str, Any]:
        return summary(run, "", reference_of(self.store, run))

    def _run(self, run: str, key: str) -> LiveRun:
        return self.store.get(str(run), key=str(key))
