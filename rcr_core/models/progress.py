"""How far the loading of a model is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from huggingface_hub.utils import tqdm
from transformers.utils import logging


@dataclass(frozen=True)
class Progress:
    """stage: configuration, processor, download or weights.

    done of total: bytes of a download, tensors of the weights; both 0 where it is not known.
    """

    stage: str
    done: int = 0
    total: int = 0


Report = Callable[[Progress], None]


def unheard(progress: Progress) -> None:
    """A report that nobody hears."""


@contextmanager
def weights_reported(report: Report) -> Iterator[None]:
    """While open, tell `report` of every hundredth of the tensors that transformers loads."""
    if report is unheard:
        yield
        return
    before = logging.set_tqdm_hook(
        lambda factory, args, kwargs: _Told(factory(*args, **kwargs), args, report)
    )
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


def download_bar(report: Report) -> type[tqdm]:
    """The hub's progress bar, which also tells `report` of the bytes of the weights that are there.

    Where `report` raises, the download ends.
    """

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any):
            # Of several files the hub keeps two sums of bytes, one of which is what the network carried.
            self._told = kwargs.get("unit") == "B" and not str(kwargs.get("name")).endswith(".transfer")
            self._there = kwargs.get("initial") or 0
            super().__init__(*args, **kwargs)

        def update(self, n: float | None = 1) -> bool | None:
            self._there += n or 0  # the bar itself does not count where it is not drawn
            if self._told and self.total:
                total = int(self.total)
                report(Progress("download", min(int(self._there), total), total))
            return super().update(n)

    return Bar


class _Told:
    """A progress bar of transformers that also reports; in all else it is that bar."""

    def __init__(self, bar: Any, args: tuple[Any, ...], report: Report):
        self._bar, self._report = bar, report
        self._total = len(args[0]) if args and hasattr(args[0], "__len__") else 0

    def __iter__(self) -> Iterator[Any]:
        items: Iterable[Any] = self._bar
        every = max(self._total // 100, 1)
        for done, item in enumerate(items):
            if self._total and done % every == 0:
                self._report(Progress("weights", done, self._total))
            yield item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bar, name)

    def __enter__(self) -> _Told:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)
