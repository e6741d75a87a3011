"""Pictures of a person's own: they wait in memory for the study that is asked about them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rcr_core.errors import StoreFullError, StudyError
from rcr_core.models import open_image
from rcr_core.serving.studies.limits import StudyLimits

MAX_PICTURES = 16  # of one study


@dataclass(frozen=True)
class Picture:
    """A picture's file as it came. `key` is for its owner alone."""

    name: str
    data: bytes = field(repr=False)
    owner: str = field(default="", repr=False)
    since: float = 0.0
    key: str = field(default_factory=lambda: secrets.token_urlsafe(9), repr=False)


class Shelf:
    """Pictures that wait for their study. `held` counts the bytes of those that studies have already."""

    def __init__(self, limits: StudyLimits, clock: Callable[[], float], held: Callable[[], int]):
        self._limits = limits
        self._clock = clock
        self._held = held
        self._lock = threading.Lock()
        self._waiting: dict[str, Picture] = {}

    def put(self, owner: str, name: str, data: bytes) -> Picture:
        """Take a picture. Raises `ImageError` where it is none, `StoreFullError` where it is too much."""
        open_image(data)
        picture = Picture(name, data, owner, self._clock())
        held = self._held()  # before the lock, which is never held while another is asked for
        with self._lock:
            self._sweep()
            own = [one for one in self._waiting.values() if one.owner == owner]
            if len(own) >= MAX_PICTURES or _size(own) + len(data) > self._limits.picture_bytes:
                most = self._limits.picture_bytes >> 20
                raise StoreFullError(
                    f"a study takes {MAX_PICTURES} pictures of {most} MB together",
                    "start the study with those that are here, or let go of some",
                )
            if held + _size(self._waiting.values()) + len(data) > self._limits.all_picture_bytes:
                raise StoreFullError("the server holds as many pictures as it can", "try again in a minute")
            self._waiting[picture.key] = picture
        return picture

    def find(self, owner: str, keys: Iterable[str]) -> list[Picture]:
        """The owner's pictures of these keys. Raises `StudyError` where one is no longer there."""
        with self._lock:
            self._sweep()
            found = [self._waiting.get(key) for key in dict.fromkeys(keys)]
        if any(one is None or one.owner != owner for one in found):
            raise StudyError("a picture is no longer on the server", "choose the pictures again")
        return found

    def take(self, pictures: Iterable[Picture]) -> None:
        """Pictures that a study has now, or that their owner no longer wants."""
        with self._lock:
            for picture in pictures:
                self._waiting.pop(picture.key, None)

    def _sweep(self) -> None:
        oldest = self._clock() - self._limits.picture_ttl
        self._waiting = {key: one for key, one in self._waiting.items() if one.since >= oldest}


def _size(pictures: Iterable[Picture]) -> int:
    return sum(len(one.data) for one in pictures)
