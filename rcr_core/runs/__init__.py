"""Live runs: a worker thread each, fair turns, a queue, and a store that keeps traces for a while."""

from rcr_core.errors import StoreFullError, UnknownRunError
from rcr_core.runs.limits import StoreLimits
from rcr_core.runs.live import LiveRun
from rcr_core.runs.store import RunStore

__all__ = ["LiveRun", "RunStore", "StoreFullError", "StoreLimits", "UnknownRunError"]
