"""What a policy costs per KV head and layer-step, by formula, in vectors of width D.

Reads are an upper bound: a candidate that is already kept needs no fetch. Window and generated tokens are
free for all. Detector arithmetic counts one query; multiply by G where every query head is scored.
"""

from __future__ import annotations

from dataclasses import dataclass

from rcr_core.errors import SettingsError
from rcr_core.settings import Settings


@dataclass(frozen=True)
class Cost:
    """Vectors per KV head and layer-step.

    resident: kept on the device besides the live slots; detector: dot products to decide; rescored: exact dot
    products on a refresh; reads: vectors fetched from the prefix.
    """

    resident: float
    detector: float
    rescored: float
    reads: float


def cost(policy: str, settings: Settings, prefix: int, head_dim: int, rate: float) -> Cost:
    """Cost of a policy by name; `rate` is the realised share of layer-steps that refreshed."""
    if policy == "full" or prefix <= settings.select:
        return Cost(prefix, 0.0, prefix, 0.0)
    select = settings.select
    if policy in ("bacon", "snapkv", "oracle"):
        return Cost(0.0, 0.0, 0.0, 0.0)
    if policy == "exact":
        return Cost(0.0, 0.0, rate * prefix, rate * (prefix + select))
    if policy in ("rcr", "threshold"):
        sketch = prefix * min(settings.rank, head_dim, prefix) / head_dim
        candidates = min(settings.candidate_count, prefix)
        return Cost(sketch, sketch, candidates * rate, (candidates + select) * rate)
    if policy == "infinigen":
        partial = prefix * min(settings.channels, head_dim) / head_dim
        return Cost(partial, partial, select * rate, 2 * select * rate)
    if policy not in ("quest", "arkvale"):
        raise SettingsError(f"no cost is known of the policy {policy!r}")
    digest = 2.0 * -(-prefix // min(settings.page, settings.select))
    return Cost(digest, digest, select * rate, 2 * select * rate)


def device_vectors(policy: str, settings: Settings, prefix: int, head_dim: int, generated: int) -> float:
    """D-wide vectors that a KV head of one layer holds on the device, keys and values.

    Live slots and what the policy decides with; a prefix that stands aside on the device counts too.
    """
    whole = policy == "full" or prefix <= settings.select
    kept = prefix if whole else settings.select
    live = 2 * (kept + settings.window + generated)
    if whole:
        return float(live)
    aside = 2 * prefix if settings.offload == "none" else 0
    return live + aside + cost(policy, settings, prefix, head_dim, 0.0).resident


def full_scan(settings: Settings, prefix: int) -> int:
    """Vectors that exact re-selection reads per KV head and layer-step: all keys, values of the kept."""
    return prefix + min(settings.select, prefix)
