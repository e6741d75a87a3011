"""What runs have in common that can be compared: they answer the same question about the same picture."""

from __future__ import annotations

import hashlib
import json

from rcr_core.trace import Trace

_LIMITS = ("max_new_tokens", "repetition_penalty")  # settings that change the text under every policy
_DIGITS = 24


def subject_of(trace: Trace) -> str:
    """Equal for traces of the same processed image, prompt, model and limits, wherever they come from."""
    meta = trace.meta
    asked = [meta.prompt, meta.model, meta.family, *(meta.settings.get(name) for name in _LIMITS)]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode())
    digest.update(trace.image.tobytes())
    return digest.hexdigest()[:_DIGITS]
