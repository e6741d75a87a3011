"""The registry of a server's studies: who sees which, that one runs at a time, and what is kept how long."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import compare_digest
from typing import Any

from rcr_core.errors import StoreFullError, StudyError, UnknownStudyError
from rcr_core.findings import Row, read_results
from rcr_core.serving.studies.asked import asked
from rcr_core.serving.studies.held import HeldStudy
from rcr_core.serving.studies.limits import StudyLimits
from rcr_core.serving.studies.opening import open_row
from rcr_core.serving.studies.pictures import Shelf
from rcr_core.serving.studies.work import work
from rcr_core.serving.workbench import Workbench
from rcr_core.study.data.scenes import KINDS

SHIPPED = Path(__file__).resolve().parents[3] / "assets" / "study" / "results.jsonl.gz"
SHIPPED_ID = "shipped"
_CLOSING = 10.0  # seconds that closing waits for the token under way
_log = logging.getLogger(__name__)


class Studies:
    """Studies for everyone, and those of owners. An owner's token is its only permission.

    Everything may be called from any thread. `shipped` is a results file that is read when a study is first
    asked for: most visits never do. `clock` counts seconds, for what was not used for long.
    """

    def __init__(
        self,
        workbench: Workbench,
        limits: StudyLimits | None = None,
        shipped: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.workbench = workbench
        self.limits = limits or StudyLimits()
        self.shelf = Shelf(self.limits, clock, self._picture_bytes)
        self._clock = clock
        self._lock = threading.RLock()
        self._opening = threading.Lock()  # two clicks on one row are one pair of runs
        self._studies: dict[str, HeldStudy] = {}  # in the order of their making
        self._threads: list[threading.Thread] = []
        self._unread = shipped if shipped is not None and shipped.exists() else None
        self._closed = False

    def publish(self, path: Path) -> HeldStudy:
        """Hold a results file, or the folder of one, for everyone. Raises `StudyError`."""
        rows = read_results([path])
        if not rows:
            raise StudyError(f"there is no row in {path}", "give the results file of a study that has begun")
        with self._lock:
            number = sum(study.public for study in self._studies.values()) + 1
            name = path.name if path.is_dir() else path.parent.name or path.name
            return self._hold_public(f"study-{number}", f"{name}: {described(rows)}", rows)

    def start(self, owner: str, values: Any) -> HeldStudy:
        """Start the study that a request describes (see `asked`); returns at once.

        Raises `SettingsError`, `PromptError`; `StudyError` for a picture that is gone; `StoreFullError` where
        a study runs already.
        """
        keys = values.get("pictures", []) if isinstance(values, dict) else []
        pictures = self.shelf.find(owner, _texts(keys))
        wanted = asked(values, pictures, self.workbench)
        with self._lock:
            self._check_room(owner)
            study = HeldStudy(
                wanted.label,
                owner=owner,
                total=len(wanted.tasks),
                samples=wanted.samples,
                pictures=pictures,
            )
            self._keep(study)
            self._sweep()
            turns = self.workbench.store.turns
            thread = threading.Thread(
                target=work, args=(study, wanted, self.workbench, turns), name="rcr study", daemon=True
            )
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            thread.start()
        self.shelf.take(pictures)
        return study

    def get(self, study_id: str, owner: str = "") -> HeldStudy:
        """A study that is for everyone, or the owner's. Raises `UnknownStudyError`."""
        self._read()
        with self._lock:
            self._sweep()
            study = self._studies.get(study_id)
            if study is None or not (study.public or _same(owner, study.owner)):
                raise UnknownStudyError
            study.used = self._clock()
        return study

    def own(self, study_id: str, owner: str) -> HeldStudy:
        """A study that this owner may stop. Raises `UnknownStudyError`."""
        study = self.get(study_id, owner)
        if study.public:
            raise UnknownStudyError
        return study

    def list(self, owner: str) -> list[HeldStudy]:
        """The studies for everyone, then the owner's, newest first."""
        self._read()
        with self._lock:
            self._sweep()
            studies = list(self._studies.values())
        own = [one for one in reversed(studies) if not one.public and _same(owner, one.owner)]
        return sorted((one for one in studies if one.public), key=lambda one: one.id != SHIPPED_ID) + own

    def drop(self, study_id: str, owner: str) -> None:
        """Stop a study of the owner and forget it. Raises `UnknownStudyError`."""
        study = self.own(study_id, owner)
        with self._lock:
            self._studies.pop(study.id, None)
        study.stop()

    def open(self, study: HeldStudy, key: str, owner: str) -> dict[str, Any]:
        """Show a row of a study as a pair of runs in the store, see `open_row`."""
        with self._opening, self.workbench.models.held():
            return open_row(study, key, owner, self.workbench)

    def close(self) -> None:
        """Stop every study and wait for the token under way."""
        with self._lock:
            self._closed = True
            studies, threads = list(self._studies.values()), list(self._threads)
        for study in studies:
            study.stop()
        until = time.monotonic() + _CLOSING
        for thread in threads:
            thread.join(max(until - time.monotonic(), 0.0))

    def _read(self) -> None:
        with self._lock:
            path, self._unread = self._unread, None
            if path is None:
                return
            try:
                rows = read_results([path])
                self._hold_public(SHIPPED_ID, described(rows), rows)
            except StudyError as error:
                _log.warning("the shipped study is left out: %s", error)

    def _hold_public(self, study_id: str, label: str, rows: Sequence[Row]) -> HeldStudy:
        study = HeldStudy(label, public=True, study_id=study_id, rows=rows)
        self._keep(study)
        return study

    def _keep(self, study: HeldStudy) -> None:
        study.used = self._clock()
        self._studies[study.id] = study

    def _check_room(self, owner: str) -> None:
        if self._closed:
            raise StoreFullError("the server is being stopped", "try again in a minute")
        running = next((one for one in self._studies.values() if not one.finished), None)
        if running is not None:
            own = _same(owner, running.owner)
            raise StoreFullError(
                "one of your studies is running, and a server runs one at a time"
                if own
                else "another person's study is running, and a server runs one at a time",
                "stop it, or wait until it is done" if own else "try again later",
            )

    def _sweep(self) -> None:
        """Forget studies that are over: those not used for long, and those used least lately of too many."""
        now, limits = self._clock(), self.limits
        private = [one for one in self._studies.values() if not one.public]
        own = Counter(one.owner for one in private)
        count = len(private)
        for study in sorted((one for one in private if one.finished), key=lambda one: one.used):
            too_many = own[study.owner] > limits.per_owner or count > limits.kept
            if too_many or now - study.used > limits.ttl:
                del self._studies[study.id]
                own[study.owner] -= 1
                count -= 1

    def _picture_bytes(self) -> int:
        with self._lock:
            return sum(study.picture_bytes for study in self._studies.values())


def described(rows: Sequence[Row]) -> str:
    """A study in a few words: "200 scenes, 10 policies"."""
    samples: dict[str, set[str]] = {}
    for row in rows:
        samples.setdefault(row.data, set()).add(row.sample)
    named = {data: data if data in KINDS else f"images of {data}" for data in samples}
    counts = [f"{len(found)} {named[data]}" for data, found in samples.items()]
    return ", ".join([*counts, f"{len({row.policy for row in rows})} policies"])


def _texts(keys: Any) -> list[str]:
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _same(given: str, secret: str) -> bool:
    """Whether a token is the right one, in a time that does not tell how much of it is right."""
    return bool(secret) and compare_digest(
        given.encode(errors="surrogatepass"), secret.encode(errors="surrogatepass")
    )
