"""The softmaxes of the package: window attention, merged heads, evicted mass, attention over live slots.

Logits and probabilities are float32 whatever the model's dtype: the masses that decide a refresh are small.
"""

from __future__ import annotations

import torch
from torch import Tensor


def window_attention(query: Tensor, key: Tensor, window: int, scale: float) -> Tensor:
    """Attention of the last `window` prompt queries to the whole prompt, without a T x T matrix.

    query [1, H*G, T, D] or at least its last W rows, key [1, H, T, D] -> float32 [H, G, W, T], each row sums
    to 1.
    """
    heads, length, depth = key.shape[1:]
    groups = query.shape[1] // heads
    rows = query[0, :, -window:].reshape(heads, groups * window, depth)
    logits = (rows.float() @ key[0].float().transpose(-1, -2)).mul_(scale)  # (H, G*W, T)
    logits = logits.view(heads, groups, window, length)
    ahead = torch.ones(window, window, dtype=torch.bool, device=key.device).triu(1)
    logits[..., length - window :].masked_fill_(ahead, float("-inf"))
    return logits.softmax(-1)


def scaled_query(query: Tensor, heads: int, scale: float) -> Tensor:
    """The query of one decode step, grouped by KV head and scaled: [1, H*G, 1, D] -> float32 [H, G, D]."""
    return query.view(heads, -1, query.shape[-1]).float() * scale


def logits_of(query: Tensor, keys: Tensor) -> Tensor:
    """Exact logits: scaled query [H, G, D], keys [H, X, D] -> float32 [H, G, X]."""
    return torch.bmm(query, keys.float().transpose(1, 2))


def merge_heads(probability: Tensor, how: str) -> Tensor:
    """Scores of a KV head from its query heads: [H, G, X] -> [H, X] by `mean` or `max`."""
    return probability.amax(1) if how == "max" else probability.mean(1)


def evicted_mass(probability: Tensor, selected: Tensor, prefix: int, groups: int = 1) -> Tensor:
    """Drift: the attention mass on prefix entries that are not kept, averaged over all query heads.

    probability [H, Np + W + generated], summed over `groups` query heads (1: their mean), selected [H, S] ->
    scalar in [0, 1].
    """
    evicted = probability[:, :prefix].scatter(1, selected, 0.0)
    return (evicted.sum() / (probability.shape[0] * groups)).clamp_(max=1.0)  # rounding may exceed a share


def attend_slots(weights: Tensor, values: Tensor) -> Tensor:
    """Attention output: weights [H, G, n], values [H, n, D] -> [H, G, D] in the dtype of the values."""
    return torch.bmm(weights.to(values.dtype), values)


def top_sorted(score: Tensor, count: int) -> Tensor:
    """Indices of the `count` largest scores of each row, ascending: [H, X] -> int64 [H, count].

    Ties go to the lower index. (`topk` alone breaks them anyhow, a stable sort of long rows is far slower.)
    """
    last = score.topk(count, dim=-1).values[:, -1:]
    above, tied = score > last, score == last
    room = count - above.sum(-1, keepdim=True)
    chosen = above | (tied & (tied.cumsum(-1) <= room))
    index = torch.arange(score.shape[-1], device=score.device).expand_as(score)
    index = index.masked_fill(~chosen, score.shape[-1] - 1)  # a NaN score must not point beyond the row
    return index.topk(count, dim=-1, largest=False).values
