"""ArkVale: page digests shrunk to the mean distance (cuboid-mean), one page set for all heads of a layer."""

from __future__ import annotations

from torch import Tensor

from rcr_core.cache.store import KVStore
from rcr_core.policies.pages import PageDigest
from rcr_core.policies.quest import Quest


class ArkVale(Quest):
    name = "arkvale"
    title = "ArkVale"
    summary = "selects pages by a shrunken bound, one page set per layer, every step"

    def prepare(self, layer: int, query: Tensor, store: KVStore) -> None:
        self.pages[layer] = PageDigest.cuboid_mean(store.prefix_k, self.page)

    def select(self, layer: int, query: Tensor, store: KVStore) -> Tensor:
        pages = self.pages[layer]
        score = pages.scores(query).mean(1)  # (H, pages): raw scores, as the original averages them
        if self.settings.page_heads == "layer":
            score = score.mean(0, keepdim=True).expand_as(score)
        bias = self.gate.bias(layer, store.prefix, score.device)
        return pages.tokens(score, store.selected.shape[1], bias)
