"""The prefill oracle: one selection, scored by the uncompressed answer's own attention.

Not a method but a diagnostic: it needs a whole uncompressed run first (the rehearsal, see the engine).
"""

from __future__ import annotations

from torch import Tensor

from rcr_core.attention_math import logits_of, merge_heads, scaled_query
from rcr_core.cache.store import KVStore
from rcr_core.policies.base import Policy
from rcr_core.policies.full import Full


class Rehearsal(Full):
    """An uncompressed run that sums, per layer, the attention of every decode step to the prefix."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.sums: dict[int, Tensor] = {}  # layer -> float32 [H, Np]

    def decode(self, layer: int, query: Tensor, store: KVStore, scale: float) -> Tensor | None:
        scaled = scaled_query(query, store.keys.shape[1], scale)
        attention = logits_of(scaled, store.live_keys()).softmax(-1)  # (H, G, n)
        seen = merge_heads(attention[..., : store.prefix], self.settings.gqa)
        self.sums[layer] = seen if layer not in self.sums else self.sums[layer] + seen
        return None


class PrefillOracle(Policy):
    name = "oracle"
    title = "Prefill oracle"
    summary = "selects once, by the attention of the uncompressed answer (a diagnostic: needs that run first)"
    rehearses = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.sums: dict[int, Tensor] = {}

    def score(self, layer: int, query: Tensor, store: KVStore, scale: float, window: int) -> Tensor:
        if layer in self.sums:
            return self.sums[layer]
        # The answer was one token long: no decode step was ever taken, so nothing was attended.
        heads, length = store.prompt_k.shape[1:3]
        return query.new_zeros(heads, length - window, dtype=store.prompt_k.dtype).float()
