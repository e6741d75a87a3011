"""The policies of a study by kind: when each selects, and what it is called.

The registry of policies needs torch, which findings must not.
"""

from __future__ import annotations

REFERENCE = "full"
ORACLE = "oracle"  # reads the uncompressed answer before it starts: no rival of the others
ONE_SHOT = ("bacon", "snapkv", ORACLE)
TRIGGERED = ("threshold", "rcr")  # where drift exceeds tau
EVERY_STEP = ("exact", "quest", "arkvale", "infinigen")
FREE = (REFERENCE, *ONE_SHOT)  # read nothing from the prefix that stands aside
TITLES = {
    REFERENCE: "Uncompressed",
    "bacon": "BACON",
    "snapkv": "SnapKV",
    ORACLE: "Prefill oracle",
    "exact": "Exact re-selection",
    "threshold": "Fixed threshold",
    "rcr": "RCR",
    "quest": "Quest",
    "arkvale": "ArkVale",
    "infinigen": "InfiniGen",
}


def title_of(policy: str) -> str:
    """The policy's title; a policy that this release does not know goes by its name."""
    return TITLES.get(policy, policy)


def place_of(policy: str) -> int:
    """Where a policy stands among others: one-shot, exact, triggered, paged, and then those not known."""
    names = list(TITLES)
    return names.index(policy) if policy in TITLES else len(names)
