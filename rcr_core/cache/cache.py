"""The cache of a run: one store per managed layer, the stock layer where a sliding window may bind."""

from __future__ import annotations

from transformers import PreTrainedConfig
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache, DynamicLayer

from rcr_core.cache.offload import OffloadedStore
from rcr_core.cache.store import KVStore


def build_cache(text_config: PreTrainedConfig, prompt: int, room: int, offload: str = "none") -> Cache:
    """A cache for a prompt of `prompt` tokens and up to `room` generated ones.

    offload: where the prefix lies, as in `Settings`. Layers with a sliding window stay stock, and pass
    through unmanaged, unless the window can never bind.
    """
    layers = DynamicCache(config=text_config).layers
    if not layers:
        layers = [DynamicLayer() for _ in range(text_config.num_hidden_layers)]
    return Cache(
        layers=[_store(room, offload) if _manageable(layer, prompt + room) else layer for layer in layers]
    )


def _store(room: int, offload: str) -> KVStore:
    return KVStore(room) if offload == "none" else OffloadedStore(room, delta=offload == "conditional")


def _manageable(layer: CacheLayerMixin, length: int) -> bool:
    if type(layer) is DynamicLayer:
        return True
    return bool(getattr(layer, "is_sliding", False)) and layer.sliding_window > length
