"""SnapKV: one selection at prefill, by the attention of the last W prompt queries."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import avg_pool1d

from rcr_core.attention_math import merge_heads, window_attention
from rcr_core.cache.store import KVStore
from rcr_core.policies.base import Policy

KERNEL = 5  # of the average pooling along the token index; zeros beyond the ends count


def pooled(score: Tensor) -> Tensor:
    """Smooth scores [H, Np] along the token index."""
    return avg_pool1d(score.unsqueeze(0), KERNEL, stride=1, padding=KERNEL // 2, count_include_pad=True)[0]


class SnapKV(Policy):
    name = "snapkv"
    title = "SnapKV"
    summary = "selects once, by the attention of the last prompt tokens"

    def score(self, layer: int, query: Tensor, store: KVStore, scale: float, window: int) -> Tensor:
        attention = window_attention(query, store.prompt_k, window, scale)  # (H, G, W, T)
        rows = attention[..., : attention.shape[-1] - window].mean(2)  # (H, G, Np)
        return pooled(merge_heads(rows, self.settings.gqa))
