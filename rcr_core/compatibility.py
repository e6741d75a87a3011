"""What transformers calls by another name in one of the versions that are supported: 5.18 to 5.24."""

from __future__ import annotations

import inspect
from typing import Any


def cache_name(model: Any) -> str:
    """What the cache is called among a model's arguments, those of `generate`, and its results.

    It was `past_key_values`; newer versions call it `cache`, and a model's results have no other name for it.
    """
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
