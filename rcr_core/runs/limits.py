"""How much a store holds, how long, and how many runs it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoreLimits:
    """Limits of a `RunStore`.

    max_bytes: of all traces together; beyond it finished runs go that were used least lately
    ttl: seconds since its last use that a finished run stays
    concurrent: runs that decode at once
    queued: runs that wait for that
    per_owner: runs of one owner that wait or decode
    finished_per_owner: runs of one owner that are over; beyond it those go that were used least lately
    """

    max_bytes: int = 512 << 20
    ttl: float = 6 * 3600.0
    concurrent: int = 2
    queued: int = 16
    per_owner: int = 6
    finished_per_owner: int = 200
