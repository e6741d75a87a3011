"""RCR Scope's core: full decoding under a KV selection policy, with instrumentation.

Dimension legend, used in comments and docstrings throughout:

    B   batch (always 1)            T   prompt length, in tokens
    L   text layers                 W   window: the last prompt tokens, always kept
    H   KV heads                    Np  prefix: the T - W prompt tokens before the window
    G   query heads per KV head     S   selected prefix entries per KV head
    D   head dimension              C   candidates that a refresh scores exactly
    N   generated tokens (steps)    R   rank of the detector's sketch
    P   visual tokens               n   live slots of a store: S + W + generated

Step t is the forward pass whose logits choose generated token t. Step 0 is the prefill: it attends to the
whole prompt and takes no decision; a layer-step is one layer of a step t >= 1.
"""

from __future__ import annotations

from importlib import import_module

# Loaded when first asked for, so that reading a trace needs neither torch nor transformers.
_PUBLIC = {
    "Captioner": "rcr_core.captioning",
    "CaptionRequest": "rcr_core.captioning",
    "Edit": "rcr_core.edits",
    "POLICIES": "rcr_core.policies",
    "Settings": "rcr_core.settings",
    "load_model": "rcr_core.models",
    "open_image": "rcr_core.models",
    "prepare": "rcr_core.models",
    "read_trace": "rcr_core.trace",
    "save_trace": "rcr_core.trace",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
