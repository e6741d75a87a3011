"""Which task of a study comes next: samples in their order, and of each the uncompressed run first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from rcr_core.study.task import Image, Task


class TaskQueue:
    """Tasks that can be run now, and those that wait for the uncompressed run of their image.

    images: those whose uncompressed run is there already.
    """

    def __init__(self, tasks: Iterable[Task], images: Iterable[Image]):
        self._order: dict[int, tuple[int, int]] = {}
        self._ready: list[tuple[tuple[int, int], Task]] = []
        self._waiting: dict[Image, list[Task]] = {}
        known = set(images)
        for number, task in enumerate(tasks):
            self._order[id(task)] = (task.place, number)
            if task.refers or task.image in known:
                self.push(task)
            else:
                self._waiting.setdefault(task.image, []).append(task)

    def __bool__(self) -> bool:
        return bool(self._ready)

    def push(self, task: Task) -> None:
        """Put a task (back) to its place among those that can be run."""
        heapq.heappush(self._ready, (self._order[id(task)], task))

    def pop(self) -> Task:
        return heapq.heappop(self._ready)[1]

    def release(self, image: Image) -> None:
        """The uncompressed run of an image is there."""
        for task in self.drop(image):
            self.push(task)

    def drop(self, image: Image) -> list[Task]:
        """The tasks that wait for an image, which wait no more."""
        return self._waiting.pop(image, [])

    def orphans(self) -> list[Task]:
        """Tasks that wait for a run that is not among the tasks, which wait no more."""
        awaited = {task.image for _, task in self._ready if task.refers}
        return [task for image in set(self._waiting) - awaited for task in self.drop(image)]
