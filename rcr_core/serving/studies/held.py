"""One study as a server keeps it: how it stands, and its rows."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rcr_core.errors import ScopeError
from rcr_core.findings import Row
from rcr_core.serving.studies.pictures import Picture
from rcr_core.serving.studies.snapshot import Snapshot
from rcr_core.study.data import Sample
from rcr_core.study.runner import Progress

FINISHED = ("done", "stopped", "failed")
_FAILURES = 20  # that are told; their number is told anyhow
_OPENED = 512  # runs of rows that are remembered; others are decoded anew


class HeldStudy:
    """A study of everyone's or of one owner's. Everything may be called from any thread.

    id        names the study; that of a study for everyone stays the same over restarts
    status    waiting (for the model), running; done, stopped, failed
    error     why it ended with the status failed
    stopping  set as soon as it is to end;  over  set when it has
    samples   its images by id, where it was started here
    pictures  of its owner's own that it asks about
    used      when it was last asked for, on the clock of `Studies`
    """

    def __init__(
        self,
        label: str,
        *,
        owner: str = "",
        public: bool = False,
        study_id: str = "",
        rows: Sequence[Row] = (),
        total: int = 0,
        samples: Mapping[str, Sample] | None = None,
        pictures: Sequence[Picture] = (),
    ):
        self.id = study_id or secrets.token_urlsafe(9)
        self.label, self.owner, self.public = label, owner, public
        self.samples = samples or {}
        self.pictures = tuple(pictures)
        self.created = time.time()
        self.used = 0.0
        self.status = "done" if public else "waiting"
        self.error: ScopeError | None = None
        self.progress = Progress(len(rows), total or len(rows), 0)
        self.opened: OrderedDict[tuple, str] = OrderedDict()  # (owner, image, what) -> id of its run
        self.stopping = threading.Event()
        self.over = threading.Event()
        self._lock = threading.Lock()
        self._rows = list(rows)
        self._began = 0.0
        self._on_stop: Callable[[], None] = lambda: None
        self._snapshot = Snapshot(())
        if public:
            self.over.set()

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    @property
    def rows(self) -> Sequence[Row]:
        """What is there so far, in the order of its coming."""
        return self.snapshot().rows

    def snapshot(self) -> Snapshot:
        """The rows so far; the same one for as long as no row comes."""
        with self._lock:
            if len(self._snapshot.rows) != len(self._rows):
                self._snapshot = Snapshot(self._rows)
            return self._snapshot

    @property
    def picture_bytes(self) -> int:
        return sum(len(one.data) for one in self.pictures)

    @property
    def stamp(self) -> str:
        """How it stands; a page that knows this stamp need not be told again."""
        progress = self.progress
        return f"{self.status}.{progress.done}.{len(progress.failed)}"

    def belongs_to(self, owner: str) -> bool:
        """Whether this owner may stop and drop it. Studies for everyone belong to nobody."""
        return bool(owner) and owner == self.owner

    def stop(self) -> None:
        """End it: what is decoded is given up, the rows stay."""
        self.stopping.set()
        self._on_stop()

    def note_opened(self, what: tuple, run_id: str) -> None:
        """A run that shows a row of this study."""
        self.opened[what] = run_id
        self.opened.move_to_end(what)
        while len(self.opened) > _OPENED:
            self.opened.popitem(last=False)

    # ---- for its thread

    def on_stop(self, act: Callable[[], None]) -> None:
        """What `stop` does besides; at once where it was called already."""
        self._on_stop = act
        if self.stopping.is_set():
            act()

    def tell(self, progress: Progress) -> None:
        """A row has come, or a task has failed."""
        if self.status == "waiting":
            self.status, self._began = "running", time.monotonic()
        if progress.row is not None:
            with self._lock:
                self._rows.append(progress.row)
        self.progress = progress

    def end(self, error: ScopeError | None = None) -> None:
        """It is over: with an error, stopped, or with every task done or failed."""
        over = self.progress.done + len(self.progress.failed)
        whole = bool(self.progress.total) and over >= self.progress.total
        self.error = error
        self.status = "failed" if error else "done" if whole else "stopped"
        self.over.set()

    # ---- for whoever reads it

    def summary(self, owner: str) -> dict[str, Any]:
        """The study as plain JSON, for an owner."""
        stamp = self.stamp  # first: where it changes meanwhile, the page is told again
        progress, error = self.progress, self.error
        return {
            "stamp": stamp,
            "id": self.id,
            "label": self.label,
            "public": self.public,
            "mine": self.belongs_to(owner),
            "status": self.status,
            "error": error and {"message": error.message, "hint": error.hint},
            "created": self.created,
            "done": progress.done,
            "total": progress.total,
            "failed": len(progress.failed),
            "failures": [
                {
                    "sample": failed.task.sample.id,
                    "policy": failed.task.variant.policy,
                    "message": failed.why.message,
                    "hint": failed.why.hint,
                }
                for failed in progress.failed[:_FAILURES]
            ],
            "left": self._left(progress),
        }

    def _left(self, progress: Progress) -> float | None:
        """Seconds that the rest will take if it goes on as before; None while that is not known."""
        over = progress.done + len(progress.failed)
        if self.status != "running" or not over:
            return None
        return (time.monotonic() - self._began) / over * (progress.total - over)
