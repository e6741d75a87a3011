"""Selection policies: one class a file, and the registry of their names."""

from __future__ import annotations

from rcr_core.edits import Gate
from rcr_core.errors import SettingsError
from rcr_core.policies.arkvale import ArkVale
from rcr_core.policies.bacon import Bacon
from rcr_core.policies.base import LayerView, Policy
from rcr_core.policies.exact import ExactReselect
from rcr_core.policies.full import Full
from rcr_core.policies.infinigen import InfiniGen
from rcr_core.policies.oracle import PrefillOracle, Rehearsal
from rcr_core.policies.quest import Quest
from rcr_core.policies.rcr import FixedDrift, RateControlled
from rcr_core.policies.snapkv import SnapKV
from rcr_core.settings import Settings

POLICIES: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
        Full,
        Bacon,
        SnapKV,
        PrefillOracle,
        ExactReselect,
        FixedDrift,
        RateControlled,
        Quest,
        ArkVale,
        InfiniGen,
    )
}


def make_policy(name: str, settings: Settings, gate: Gate | None = None, observe: bool = False) -> Policy:
    """A policy for one run. Raises `SettingsError` for an unknown name."""
    if name not in POLICIES:
        raise unknown_policy(name)
    return POLICIES[name](settings, gate, observe)


def unknown_policy(name: str) -> SettingsError:
    return SettingsError(f"unknown policy {name!r}", f"known policies: {', '.join(POLICIES)}")


__all__ = [
    "POLICIES",
    "LayerView",
    "Policy",
    "Rehearsal",
    "make_policy",
    "unknown_policy",
    *(p.__name__ for p in POLICIES.values()),
]
