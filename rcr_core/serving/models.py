"""The models that a server was started with: one at a time is loaded, for all who see the page."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.captioning import Captioner
from rcr_core.errors import BusyError, ScopeError
from rcr_core.models import Placement, load_model
from rcr_core.models.progress import Progress

_CLOSING = 10.0  # seconds that closing waits for the tensor under way


def is_bundled(source: str) -> bool:
    """Whether a folder or hub id is the captioner that ships."""
    return Path(source).resolve() == MODEL_FOLDER.resolve()


@dataclass(frozen=True, eq=False)
class ModelState:
    """How the chosen model stands. seconds: since loading began; captioner, error: None while it loads."""

    name: str
    progress: Progress
    seconds: float
    captioner: Captioner | None = None
    error: ScopeError | None = None


class Models:
    """Folders or hub ids, of which the chosen one is loaded in the background. For any thread.

    names: what people see of the sources, in their order, each once; paths are nobody's business.
    """

    def __init__(self, sources: Sequence[str] = (), placement: Placement | None = None):
        once = {Path(source).resolve(): source for source in sources}
        self.sources = tuple(once.values()) or (str(MODEL_FOLDER),)
        self.names = _names(self.sources)
        self.placement = placement or Placement()
        self.chosen = self.sources[0]
        self._lock = threading.Lock()
        self._held = 0
        self._thread: threading.Thread | None = None
        self._future: Future[Captioner] = Future()
        self._progress = Progress("configuration")
        self._began = time.monotonic()

    def load(self) -> None:
        """Begin to load the chosen model; returns at once."""
        with self._lock:
            self._start()

    @property
    def name(self) -> str:
        """The name of the chosen model."""
        return self._name_of(self.chosen)

    def source(self, name: str) -> str:
        """The folder or hub id that has a name. Raises `BusyError` where there is none."""
        if name not in self.names:
            raise BusyError(f"this server has no model {name}", "start it with another --model")
        return self.sources[self.names.index(name)]

    def choose(self, name: str, working: int = 0) -> None:
        """Let go of the present model, or break off its loading, and load another; returns at once.

        working: runs that wait or decode. Raises `BusyError` where they, or a study, need the present one,
        and where there is no such model.
        """
        source = self.source(name)
        with self._lock:
            if source == self.chosen and not self._failed():
                return
            if working or self._held:
                runs = "a run is" if working == 1 else f"{working} runs are"
                what = "a study goes on" if self._held else f"{runs} not over"
                raise BusyError(f"{self.name} is in use: {what}", "switch when that is over, or stop it")
            self.chosen = source
            self._start()

    @contextmanager
    def held(self) -> Iterator[None]:
        """While open, the model stays as it is."""
        with self._lock:
            self._held += 1
        try:
            yield
        finally:
            with self._lock:
                self._held -= 1

    def close(self) -> None:
        """Break off what is being loaded and wait until it is: torch may not be left in the midst of it."""
        with self._lock:
            thread, self._future = self._thread, Future()
            self._future.set_exception(BusyError("the server is being stopped", "try again in a minute"))
        if thread is not None:
            thread.join(_CLOSING)

    def captioner(self, timeout: float | None = None) -> Captioner:
        """The model, ready for runs; waits for it. Raises `LoadError` where it cannot be loaded."""
        return self._future.result(timeout)

    def state(self) -> ModelState:
        with self._lock:
            name, future, progress = self.name, self._future, self._progress
            seconds = time.monotonic() - self._began
        if not future.done():
            return ModelState(name, progress, seconds)
        if (error := future.exception()) is not None:
            return ModelState(name, progress, seconds, error=error)
        return ModelState(name, progress, seconds, captioner=future.result())

    def _failed(self) -> bool:
        return self._future.done() and self._future.exception() is not None

    def _start(self) -> None:
        before = self._thread
        if before is not None:  # else somebody may wait for the first one already
            self._future = Future()  # with the old future goes the old model
        self._progress, self._began = Progress("configuration"), time.monotonic()
        work = (self.chosen, self._future, before)
        self._thread = threading.Thread(target=self._load, args=work, name="rcr model", daemon=True)
        self._thread.start()

    def _load(self, source: str, future: Future[Captioner], before: threading.Thread | None) -> None:
        if before is not None:
            before.join()  # two models at once may not fit
            gc.collect()  # a model holds itself in cycles
            _empty_caches()
        try:
            report = partial(self._hear, future)
            loaded = load_model(source, **vars(self.placement), report=report)
            if Path(source).name != (name := self._name_of(source)):
                loaded = replace(loaded, name=name)  # or runs of two models would pass for runs of one
            future.set_result(Captioner(loaded))
        except ScopeError as error:
            # Frames of the traceback would keep what was loaded so far for as long as the error.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            future.set_exception(error)
        except BaseException as error:
            future.set_exception(ScopeError(f"the model cannot be loaded: {type(error).__name__}: {error}"))
            raise

    def _name_of(self, source: str) -> str:
        return self.names[self.sources.index(source)]

    def _hear(self, future: Future[Captioner], progress: Progress) -> None:
        with self._lock:
            if future is not self._future:
                raise BusyError("another model was chosen meanwhile", "try again with that one")
            self._progress = progress


def _names(sources: Sequence[str]) -> tuple[str, ...]:
    """The last part of each path or hub id, and more parts where others end on the same."""
    parts = [Path(source).parts or (source,) for source in sources]
    kept = [1] * len(parts)
    while True:
        names = ["/".join(own[-count:]) for own, count in zip(parts, kept, strict=True)]
        alike = [at for at, name in enumerate(names) if names.count(name) > 1 and kept[at] < len(parts[at])]
        if not alike:
            return tuple(names)
        for at in alike:
            kept[at] += 1


def _empty_caches() -> None:
    """Give back what torch keeps of the old model: other programs, or a library of ours, may need it."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch._C._host_emptyCache()  # pinned memory; nothing public does it
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
