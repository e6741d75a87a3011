"""Page digests of a prefix: what Quest and ArkVale score instead of single keys."""

from __future__ import annotations

import torch
from torch import Tensor


class PageDigest:
    """Two vectors per page of `size` consecutive prefix tokens: an upper and a lower corner per channel.

    `upper`, `lower` float32 [H, pages, D]. The last page may hold fewer tokens.
    """

    def __init__(self, upper: Tensor, lower: Tensor, size: int, prefix: int):
        self.corners = torch.cat((upper, lower), dim=-1).transpose(1, 2).contiguous()  # (H, 2D, pages)
        self.size = size
        self.prefix = prefix
        self.offset = torch.arange(prefix, device=upper.device) % size
        self.page = torch.arange(prefix, device=upper.device) // size

    @classmethod
    def bounds(cls, keys: Tensor, size: int) -> PageDigest:
        """Quest: largest and smallest key per channel. keys [H, Np, D]."""
        pages, valid = _paged(keys, size)
        upper = pages.masked_fill(~valid, float("-inf")).amax(2)
        lower = pages.masked_fill(~valid, float("inf")).amin(2)
        return cls(upper, lower, size, keys.shape[1])

    @classmethod
    def cuboid_mean(cls, keys: Tensor, size: int) -> PageDigest:
        """ArkVale: centre of the bounds, plus and minus the mean distance from it. keys [H, Np, D]."""
        pages, valid = _paged(keys, size)
        upper = pages.masked_fill(~valid, float("-inf")).amax(2)
        lower = pages.masked_fill(~valid, float("inf")).amin(2)
        centre = (upper + lower) / 2
        distance = (pages - centre.unsqueeze(2)).abs().masked_fill(~valid, 0.0).sum(2) / valid.sum(2)
        return cls(centre + distance, centre - distance, size, keys.shape[1])

    def scores(self, query: Tensor) -> Tensor:
        """sum over channels of max(q * upper, q * lower): query [H, G, D] -> [H, G, pages]."""
        split = torch.cat((query.clamp_min(0.0), query.clamp_max(0.0)), dim=-1)
        return torch.bmm(split, self.corners)

    def tokens(self, page_scores: Tensor, count: int, bias: Tensor | None = None) -> Tensor:
        """The first `count` tokens of the best pages: page_scores [H, pages] -> int64 [H, count], ascending.

        Where the budget ends inside a page, or the last page is short, the next page's first tokens fill it.
        """
        order = page_scores.argsort(dim=-1, descending=True, stable=True)
        rank = torch.empty_like(order).scatter_(
            1, order, torch.arange(order.shape[1], device=order.device).expand_as(order)
        )
        place = (rank[:, self.page] * self.size + self.offset).float()  # (H, Np), smaller is better
        if bias is not None:
            place = place - bias
        return place.topk(count, dim=-1, largest=False).indices.sort(-1).values

    @property
    def resident_bytes(self) -> int:
        return self.corners.nbytes


def _paged(keys: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Keys in pages, float32 [H, pages, size, D], and which places hold a token [1, pages, size, 1]."""
    heads, prefix, depth = keys.shape
    pages = -(-prefix // size)
    padded = keys.new_zeros(heads, pages * size, depth, dtype=torch.float32)
    padded[:, :prefix] = keys
    valid = torch.arange(pages * size, device=keys.device) < prefix
    return padded.view(heads, pages, size, depth), valid.view(1, pages, size, 1)
