"""The cache of a run: live slots per layer, and the prefix aside."""

from rcr_core.cache.cache import build_cache
from rcr_core.cache.offload import OffloadedStore
from rcr_core.cache.store import KeysAtHand, KVStore

__all__ = ["KVStore", "KeysAtHand", "OffloadedStore", "build_cache"]
