"""Quest: pages of keys with per-channel bounds; the best pages take part (arXiv 2406.10774), per KV head."""

from __future__ import annotations

from torch import Tensor

from rcr_core.attention_math import merge_heads
from rcr_core.cache.store import KVStore
from rcr_core.policies.pages import PageDigest
from rcr_core.policies.per_step import PerStep


class Quest(PerStep):
    name = "quest"
    title = "Quest"
    summary = "selects pages by an upper bound of their logits, every step"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.pages: dict[int, PageDigest] = {}

    @property
    def page(self) -> int:
        """Tokens per page: never more than there are slots, or one page would not fit."""
        return min(self.settings.page, self.settings.select)

    def prepare(self, layer: int, query: Tensor, store: KVStore) -> None:
        self.pages[layer] = PageDigest.bounds(store.prefix_k, self.page)

    @property
    def decision_bytes(self) -> int:
        return sum(pages.resident_bytes for pages in self.pages.values())

    def select(self, layer: int, query: Tensor, store: KVStore) -> Tensor:
        pages = self.pages[layer]
        score = merge_heads(pages.scores(query).softmax(-1), self.settings.gqa)
        bias = self.gate.bias(layer, store.prefix, score.device)
        return pages.tokens(score, store.selected.shape[1], bias)
