"""Policies that select anew in every layer of every step, by a score of the prefix."""

from __future__ import annotations

import torch
from torch import Tensor

from rcr_core.attention_math import attend_slots
from rcr_core.cache.store import KVStore
from rcr_core.policies.bacon import Bacon


class PerStep(Bacon):
    """Base: BACON selects at prefill, `select` at every step. An edit can hold a layer's selection."""

    edits = ("pin", "ban", "refresh", "hold")

    def select(self, layer: int, query: Tensor, store: KVStore) -> Tensor:
        """The selection for this step, int64 [H, S] ascending. query float32 [H, G, D], scaled."""
        raise NotImplementedError

    def attend(self, layer: int, query: Tensor, store: KVStore) -> Tensor:
        held = self.gate.refresh(layer) is False
        drift = None
        if self.observe:
            before = self.share(layer, query, store.logits(query), store)
            drift = self.drift_of(before, query, store)
        if not held:
            store.write(self.select(layer, query, store))
        logits = store.logits(query)
        weights = logits.softmax(-1)
        if self.observe:
            fire = torch.full_like(drift, not held)
            self.show(layer, store, weights, self.share(layer, query, logits, store), drift, fire=fire)
        return attend_slots(weights, store.live_values())
