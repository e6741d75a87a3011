"""What the tests of live runs share: runs of the bundled captioner as a store starts them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rcr_core.bundled.scenes import CAPTION_PROMPT, Scene, make_scene
from rcr_core.captioning import Captioner, CaptionRequest, CaptionRun
from rcr_core.models import prepare
from rcr_core.runs import LiveRun, RunStore

ANNA, BEN = "anna-0123456789abcdef", "ben-0123456789abcdefg"
SCENE = make_scene(9005, count=10)  # its caption takes more than 100 steps under every policy


def maker(
    captioner: Captioner,
    policy: str = "full",
    scene: Scene = SCENE,
    prompt: str = CAPTION_PROMPT,
    run_type: type[CaptionRun] = CaptionRun,
    **request,
) -> Callable[[], CaptionRun]:
    """What `RunStore.start` takes; the prompt is prepared now, so that the making takes no time."""
    prepared = prepare(captioner.loaded, [scene.image()], prompt)
    return lambda: run_type(captioner, prepared, CaptionRequest(policy, **request))


def ended(run: LiveRun, seconds: float = 60.0) -> LiveRun:
    """The run, once it is over."""
    until = time.monotonic() + seconds
    while not run.finished:
        assert time.monotonic() < until, f"still {run.status} at step {run.steps}"
        run.wait(1 << 30, 1.0)
    return run


def reached(run: LiveRun, steps: int, seconds: float = 60.0) -> LiveRun:
    """The run, once it has so many steps."""
    until = time.monotonic() + seconds
    while run.steps < steps and not run.finished:
        assert time.monotonic() < until, f"still {run.status} at step {run.steps}"
        run.wait(steps, 1.0)
    assert run.steps >= steps
    return run


def comes_to(run: LiveRun, status: str, seconds: float = 30.0) -> LiveRun:
    """The run, once it has this status, which it must not skip."""
    until = time.monotonic() + seconds
    while run.status != status:
        assert time.monotonic() < until and not run.finished, f"is {run.status}"
        run.wait(1 << 30, 0.05)
    return run


def started(store: RunStore, captioner: Captioner, policy: str = "full", **request) -> LiveRun:
    """A run of Anna's."""
    return store.start(ANNA, maker(captioner, policy, **request), policy=policy)


class Gate:
    """A `make` that waits until somebody opens; stands for a model that is being loaded."""

    def __init__(self, make):
        self.make, self.opened = make, threading.Event()

    def __call__(self):
        assert self.opened.wait(30)
        return self.make()


def logged(log: list, name: str) -> type[CaptionRun]:
    """A run that notes every step in a common log, in the order in which the steps really happen."""

    class Logged(CaptionRun):
        def __iter__(self):
            for record in super().__iter__():
                log.append((name, record.step))
                yield record

    return Logged
