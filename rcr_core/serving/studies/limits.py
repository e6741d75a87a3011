"""How many studies a server keeps, how long, and how much of people's own pictures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StudyLimits:
    """Limits of `Studies`. One study runs at a time, whoever started it.

    per_owner: studies of one owner; beyond it the one used least lately goes
    kept: studies of all owners together; beyond it likewise
    ttl: seconds since its last use that a study which is over stays
    picture_bytes: of the pictures of one study together
    all_picture_bytes: of all pictures that wait for a study or belong to one
    picture_ttl: seconds that a picture waits for its study
    """

    per_owner: int = 4
    kept: int = 32
    ttl: float = 6 * 3600.0
    picture_bytes: int = 64 << 20
    all_picture_bytes: int = 256 << 20
    picture_ttl: float = 900.0
