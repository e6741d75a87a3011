"""Exact re-selection: in every layer of every step the S prefix entries that the query attends to most."""

from __future__ import annotations

import torch
from torch import Tensor

from rcr_core.attention_math import attend_slots, logits_of, merge_heads, top_sorted
from rcr_core.cache.store import KeysAtHand, KVStore
from rcr_core.policies.base import spread
from rcr_core.policies.per_step import PerStep


class ExactReselect(PerStep):
    name = "exact"
    title = "Exact re-selection"
    summary = "scans the full prefix in every layer of every step"

    def attend(self, layer: int, query: Tensor, store: KVStore) -> Tensor:
        kept = store.selected.shape[1]
        tail = logits_of(query, store.live_keys()[:, kept:])
        keys = store.scan()
        everything = torch.cat((logits_of(query, keys), tail), dim=-1)  # (H, G, Np + W + generated)
        probability = everything.softmax(-1)
        share = probability.sum(1)
        drift = self.drift_of(share, query, store) if self.observe else None
        held = self.gate.refresh(layer) is False
        if not held:
            score = merge_heads(probability[..., : store.prefix], self.settings.gqa)
            store.write(top_sorted(self.biased(layer, score, store), kept), KeysAtHand(keys))
        chosen = everything.gather(2, spread(store.selected, everything))
        weights = torch.cat((chosen, tail), dim=-1).softmax(-1)
        if self.observe:
            self.show(layer, store, weights, share, drift, fire=torch.full_like(drift, not held))
        return attend_slots(weights, store.live_values())
