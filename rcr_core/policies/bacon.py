"""BACON: SnapKV's score, calibrated by what the very last prompt token sees (arXiv 2606.14782)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d

from rcr_core.attention_math import merge_heads, window_attention
from rcr_core.cache.store import KVStore
from rcr_core.policies.base import Policy
from rcr_core.policies.snapkv import pooled


@dataclass(frozen=True)
class Profile:
    """Where the paper and the released code differ.

    radius: neighbourhood of the intra-layer coherence; divide_by_window: ends divide by the full window
    (zeros count) instead of by the true number of neighbours; own_top: each standard deviation over its own
    top M, instead of both over the top M of B; gate: lambda is shrunk where the boundary evidence is tiny.
    """

    radius: int
    divide_by_window: bool
    own_top: bool
    gate: bool


PROFILES = {"paper": Profile(5, False, False, False), "release": Profile(2, True, True, True)}
LAYERS_BACK = 4  # m: preceding layers of the inter-layer persistence
TOP_SHARE = 2.0  # rho of the scale matching: M = 2 K
GAMMA = 0.5  # strength of the calibration (from the released code; the paper leaves it open)
EPSILON = 1e-8


class Bacon(Policy):
    name = "bacon"
    title = "BACON"
    summary = "selects once, calibrated by what the last prompt token sees"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._evidence: list[Tensor] = []  # of the preceding layers

    def prefill(self, layer: int, query: Tensor, store: KVStore, scale: float) -> None:
        window = min(self.settings.window, store.prompt_k.shape[2])
        if layer < self.settings.skip_layers and store.prompt_k.shape[2] > window:
            # A skipped layer selects nothing, but its evidence persists into the layers that do.
            self.score(layer, query, store, scale, window)
        super().prefill(layer, query, store, scale)

    def score(self, layer: int, query: Tensor, store: KVStore, scale: float, window: int) -> Tensor:
        attention = window_attention(query, store.prompt_k, window, scale)  # (H, G, W, T)
        seen = attention[..., : attention.shape[-1] - window]
        base = pooled(merge_heads(seen.mean(2), self.settings.gqa))  # B
        last = pooled(merge_heads(seen[:, :, -1], self.settings.gqa))  # Q
        evidence = (last - base).clamp_min(0.0)  # E
        score = calibrated(
            base, evidence, self._evidence, PROFILES[self.settings.bacon], self.settings.select
        )
        self._evidence = [*self._evidence, evidence][-LAYERS_BACK:]
        return score


def calibrated(base: Tensor, evidence: Tensor, before: list[Tensor], profile: Profile, select: int) -> Tensor:
    """S = B + lambda * (E + L + T). base, evidence and each of `before` (preceding layers' E): [H, Np]."""
    window = 2 * profile.radius + 1
    coherence = avg_pool1d(
        evidence.unsqueeze(0),
        window,
        stride=1,
        padding=profile.radius,
        count_include_pad=profile.divide_by_window,
    )[0]
    # Preceding layers may lie on another device.
    persistence = (
        torch.stack([one.to(evidence.device) for one in before]).mean(0)
        if before
        else torch.zeros_like(evidence)
    )
    total = evidence + coherence + persistence  # V
    count = min(int(TOP_SHARE * select), base.shape[-1])  # M
    top = base.topk(count, dim=-1)
    top_total = total.topk(count, dim=-1).values if profile.own_top else total.gather(-1, top.indices)
    spread = top.values.std(-1, unbiased=False, keepdim=True)
    strength = GAMMA * spread / (top_total.std(-1, unbiased=False, keepdim=True) + EPSILON)
    if profile.gate:
        share = top_total.mean(-1, keepdim=True) / (top.values.mean(-1, keepdim=True) + EPSILON)
        strength = strength * share.clamp(0.0, 1.0)
    return base + strength * total
