"""What only a full read of the prefix can tell. Off by default: it costs what the policies save."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from rcr_core.attention_math import evicted_mass, logits_of
from rcr_core.cache.store import KVStore


@dataclass
class Diagnosis:
    """One layer at one step, for the selection that stood before the step's decision.

    drift_exact: scalar, the exact evicted mass; probability float32 [H, Np + W + generated], the full-cache
    attention (mean over the query heads of a KV head); top_position int64 [H, G], the most-attended prefix
    entry of each query head; recall: scalar, share of the true top S among the candidates, where the policy
    has candidates.
    """

    drift_exact: Tensor
    probability: Tensor
    top_position: Tensor
    prefix: int
    recall: Tensor | None = None

    def to(self, device: torch.device) -> Diagnosis:
        """The diagnosis on a device."""
        return replace(self, **moved(self, device))

    def judge(self, candidates: Tensor, select: int) -> None:
        """Set `recall` from the candidates [H, C] of this step."""
        truth = self.probability[:, : self.prefix].topk(select, dim=-1).indices  # (H, S)
        hit = (truth.unsqueeze(2) == candidates.unsqueeze(1)).any(2)
        self.recall = hit.float().mean()


def moved(seen: Any, device: torch.device) -> dict[str, Any]:
    """The fields of a dataclass that can be moved to a device, on it."""
    found = {spec.name: getattr(seen, spec.name) for spec in fields(seen)}
    return {name: value.to(device) for name, value in found.items() if hasattr(value, "to")}


def diagnose(query: Tensor, store: KVStore) -> Diagnosis:
    """Full-cache attention of one decode step: scaled query [H, G, D]."""
    if store.whole:
        return nothing_evicted(logits_of(query, store.live_keys()), store.prefix)
    tail = logits_of(query, store.live_keys()[:, store.selected.shape[1] :])
    keys = store.scan(counted=False)
    found = nothing_evicted(torch.cat((logits_of(query, keys), tail), dim=-1), store.prefix)
    found.drift_exact = evicted_mass(found.probability, store.selected, store.prefix)
    return found


def nothing_evicted(logits: Tensor, prefix: int) -> Diagnosis:
    """The diagnosis where the whole prefix takes part: logits [H, G, Np + W + generated]."""
    if prefix:
        top = logits[..., :prefix].argmax(-1)
    else:
        top = torch.zeros(logits.shape[:2], dtype=torch.int64, device=logits.device)
    zero = torch.zeros((), device=logits.device)
    return Diagnosis(zero, logits.softmax(-1).mean(1), top, prefix)
