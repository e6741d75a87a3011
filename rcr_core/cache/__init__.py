"""The cache of a run: live slots per layer, and the prefix aside."""

from rcr_core.cache.cache import build_cache
from rcr_core.cache.store import KVStore

__all__ = ["KVStore", "build_cache"]
