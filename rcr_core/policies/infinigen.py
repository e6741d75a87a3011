"""InfiniGen (arXiv 2406.19707): a few skewed key channels and a guessed query pick the entries.

The skew A is orthogonal, so (qA)(kA) = qk; it gathers the queries' energy in few channels. Here A comes from
the queries of the prompt at hand (per KV head, its query heads stacked), so no calibration file is needed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rcr_core.attention_math import logits_of, merge_heads, top_sorted
from rcr_core.cache.store import KVStore
from rcr_core.detector import singular_vectors
from rcr_core.policies.per_step import PerStep


def skew_of(queries: Tensor) -> Tensor:
    """Right singular vectors of the stacked queries [H, X, D] -> orthogonal [H, D, D], strongest first."""
    return singular_vectors(queries.float()).flip(-1).contiguous()


def partial_channels(queries: Tensor, skew: Tensor, count: int) -> Tensor:
    """Columns of the skew with the largest sum of |qA|: queries [H, X, D] -> [H, D, count]."""
    weight = (queries.float() @ skew).abs().sum(1)  # (H, D)
    best = top_sorted(weight, min(count, weight.shape[-1]))
    return skew.gather(2, best.unsqueeze(1).expand(-1, skew.shape[1], -1)).contiguous()


class InfiniGen(PerStep):
    name = "infinigen"
    title = "InfiniGen"
    summary = "selects by a few skewed key channels and a query guessed one layer ahead, every step"
    guesses = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.guess: dict[
            int, Tensor
        ] = {}  # layer -> guessed query float32 [H, G, D], scaled; the engine puts it here
        self.projection: dict[int, Tensor] = {}  # layer -> [H, D, channels]
        self.partial: dict[int, Tensor] = {}  # layer -> keys in those channels, float32 [H, channels, Np]

    def prepare(self, layer: int, query: Tensor, store: KVStore) -> None:
        heads, _, depth = store.prefix_k.shape
        queries = query[0].reshape(heads, -1, depth)  # the G query heads of a KV head, stacked
        self.projection[layer] = partial_channels(queries, skew_of(queries), self.settings.channels)
        self.partial[layer] = (store.prefix_k.float() @ self.projection[layer]).transpose(1, 2).contiguous()

    @property
    def decision_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in (*self.partial.values(), *self.projection.values()))

    def select(self, layer: int, query: Tensor, store: KVStore) -> Tensor:
        # The first layer has none before it; it scores with its own query.
        guess = self.guess.pop(layer, query)
        kept = store.selected.shape[1]
        prefix = torch.bmm(torch.bmm(guess, self.projection[layer]), self.partial[layer])  # (H, G, Np)
        # Window and generated keys are at hand; with them a query head weighs as much as in attention.
        tail = logits_of(guess, store.live_keys()[:, kept:])
        share = torch.cat((prefix, tail), dim=-1).softmax(-1)[..., : store.prefix]
        score = merge_heads(share, self.settings.gqa)
        return top_sorted(self.biased(layer, score, store), kept)
