"""The store of a server's runs: who may see which, how many go on at once, and what is kept how long."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from secrets import compare_digest

from rcr_core.bundled.scenes import Scene
from rcr_core.captioning import CaptionRun
from rcr_core.errors import StoreFullError, UnknownRunError
from rcr_core.runs.limits import StoreLimits
from rcr_core.runs.live import LiveRun
from rcr_core.runs.turns import Turns
from rcr_core.runs.worker import work
from rcr_core.trace import Trace

Make = Callable[[], CaptionRun]
_CLOSING = 10.0  # seconds that closing waits for the tokens under way


class RunStore:
    """Runs by owner. An owner's token is its only permission; a run's key permits to read that run.

    Everything may be called from any thread. `clock` counts seconds, for what was not used for long.
    """

    def __init__(self, limits: StoreLimits | None = None, clock: Callable[[], float] = time.monotonic):
        self.limits = limits or StoreLimits()
        self._clock = clock
        self._lock = threading.RLock()  # taken before a run's own, never while holding one
        self._runs: dict[str, LiveRun] = {}  # in the order of their making
        self._waiting: deque[tuple[LiveRun, Make]] = deque()
        self._threads: dict[threading.Thread, LiveRun] = {}
        self._turns = Turns()
        self._closed = False
        self._started = self._evicted = 0

    @property
    def turns(self) -> Turns:
        """What orders the tokens of the runs here, and of whoever else decodes on the same model."""
        return self._turns

    def start(
        self,
        owner: str,
        make: Make,
        *,
        policy: str,
        label: str = "",
        scene: Scene | None = None,
    ) -> LiveRun:
        """Start the run that `make` prepares, in a thread of its own; returns at once.

        Raises `StoreFullError` where too many runs wait, or the owner has too many that are not over.
        """
        with self._lock:
            self._sweep()
            self._check_room(owner)
            run = LiveRun(
                owner,
                kind="run",
                label=label,
                policy=policy,
                scene=scene,
                on_stop=self._leave_queue,
            )
            self._keep(run)
            self._started += 1
            self._waiting.append((run, make))
            self._admit()
        return run

    def add(
        self,
        owner: str,
        trace: Trace,
        *,
        label: str,
        kind: str = "file",
        public: bool = False,
        scene: Scene | None = None,
        run_id: str = "",
    ) -> LiveRun:
        """Hold a finished trace. What it says of its `scene` is for the caller to believe or not.

        `run_id` is for public runs alone, whose links are to last longer than the server.
        """
        run = LiveRun(
            owner,
            kind=kind,
            label=label,
            policy=trace.meta.policy,
            scene=scene,
            public=public,
            run_id=run_id,
        )
        run.hold(trace)
        with self._lock:
            self._keep(run)
            self._sweep()
        return run

    def get(self, run_id: str, owner: str = "", key: str = "") -> LiveRun:
        """A run that is public, the owner's, or read by its key. Raises `UnknownRunError`."""
        with self._lock:
            self._sweep()
            run = self._runs.get(run_id)
            if run is None or not (run.public or _same(owner, run.owner) or _same(key, run.key)):
                raise UnknownRunError
            run.used = self._clock()
        return run

    def list(self, owner: str) -> list[LiveRun]:
        """The owner's runs, newest first, and then the public ones."""
        with self._lock:
            self._sweep()
            runs = list(self._runs.values())
        own = [run for run in reversed(runs) if not run.public and _same(owner, run.owner)]
        return own + [run for run in runs if run.public]

    def drop(self, run_id: str, owner: str) -> None:
        """Stop a run of the owner and forget it. Raises `UnknownRunError`."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is None or not _same(owner, run.owner):
                raise UnknownRunError
            del self._runs[run_id]
        run.stop()

    def metrics(self) -> dict[str, float | int]:
        """What an operator wants to know."""
        with self._lock:
            self._sweep()
            runs = list(self._runs.values())
            waiting, working = len(self._waiting), len(self._threads)
            started, evicted = self._started, self._evicted
        return {
            "runs": len(runs),
            "queued": waiting,
            "working": working,
            "started": started,
            "evicted": evicted,
            "bytes": sum(run.bytes for run in runs),
            "max_bytes": self.limits.max_bytes,
            "steps_per_second": sum(run.rate for run in runs if run.status == "decoding"),
        }

    def close(self) -> None:
        """Stop every run, and wait for the threads that are decoding: others have nothing to lose."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            runs = list(self._runs.values())
            decoding = [thread for thread, run in self._threads.items() if run.decodes]
        for run in runs:
            run.stop()
        until = time.monotonic() + _CLOSING
        for thread in decoding:
            thread.join(max(until - time.monotonic(), 0.0))

    def _check_room(self, owner: str) -> None:
        limits = self.limits
        if self._closed:
            raise StoreFullError("the server is being stopped", "try again in a minute")
        own = sum(not run.finished for run in self._runs.values() if _same(owner, run.owner))
        if own >= limits.per_owner:
            raise StoreFullError(
                f"{own} of your runs are not over, which is the most at once",
                "stop one, or wait until one is done",
            )
        if len(self._threads) >= limits.concurrent and len(self._waiting) >= limits.queued:
            raise StoreFullError(
                f"{len(self._waiting)} runs are waiting, which is the most", "try again in a minute"
            )

    def _keep(self, run: LiveRun) -> None:
        run.used = self._clock()
        self._runs[run.id] = run

    def _admit(self) -> None:
        """Let runs go on from the front of the queue while there is room, and tell the others their place."""
        while self._waiting and len(self._threads) < self.limits.concurrent:
            run, make = self._waiting.popleft()
            if run.begin():
                thread = threading.Thread(target=self._work, args=(run, make), name="rcr run", daemon=True)
                self._threads[thread] = run
                thread.start()
        for place, (run, _) in enumerate(self._waiting, 1):
            run.queue(place)

    def _work(self, run: LiveRun, make: Make) -> None:
        work(run, make, self._turns)
        with self._lock:
            del self._threads[threading.current_thread()]
            run.used = self._clock()
            self._admit()
            self._sweep()

    def _leave_queue(self) -> None:
        """A run was stopped; where it waited, the others move up."""
        with self._lock:
            self._waiting = deque(pair for pair in self._waiting if not pair[0].finished)
            self._admit()

    def _sweep(self) -> None:
        """Forget finished runs: those not used for long, and those used least lately while it is too much.

        The one used last stays, however large: somebody is looking at it.
        """
        now, limits = self._clock(), self.limits
        kept = [run for run in self._runs.values() if run.finished and not run.public]
        kept.sort(key=lambda run: run.used)
        held = sum(run.bytes for run in self._runs.values())
        own = Counter(run.owner for run in kept)
        for at, run in enumerate(kept):
            too_much = held > limits.max_bytes and at + 1 < len(kept)
            too_many = own[run.owner] > limits.finished_per_owner
            if too_much or too_many or now - run.used > limits.ttl:
                del self._runs[run.id]
                self._evicted += 1
                own[run.owner] -= 1
                held -= run.bytes


def _same(given: str, secret: str) -> bool:
    """Whether a token is the right one, in a time that does not tell how much of it is right."""
    return bool(secret) and compare_digest(
        given.encode(errors="surrogatepass"), secret.encode(errors="surrogatepass")
    )
