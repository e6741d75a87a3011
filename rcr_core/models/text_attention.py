"""Whether a text model attends in a way that policies can score and select by."""

from __future__ import annotations

from typing import Any

from transformers import MODEL_MAPPING

from rcr_core.cache import KVStore, build_cache
from rcr_core.errors import LoadError
from rcr_core.models.failures import SUGGESTION

_HEADS = {"head_dim", "num_attention_heads", "num_key_value_heads"}


def check_text_attention(config: Any, name: str) -> None:
    """Raises `LoadError` where attention is more than the softmax of scaled products, as SDPA computes it.

    Gemma 2, the text model of PaliGemma 2, caps its logits first; others add sinks, or look at the image by
    layers of cross-attention, so that it is no part of the prompt. Layers that keep no keys and values are
    passed through (Qwen3.5: three of four are linear), as long as there are others.
    """
    text = config.get_text_config()
    own = [part for part in config.sub_configs if getattr(config, part, None) is text]
    if not own or getattr(text, "cross_attention_layers", None):
        raise LoadError(
            f"{name} has attention layers that are not supported: its text model does not read the image as "
            "tokens of a prompt",
            SUGGESTION,
        )
    kind = MODEL_MAPPING.get(type(text), None)
    # Before 5.24 transformers let SDPA ignore the cap.
    capped = getattr(text, "attn_logit_softcapping", None) is not None
    if capped or (kind is not None and not kind._supports_sdpa):
        raise _unsupported(name, text, "their weights are not a plain softmax")
    if _HEADS & set(getattr(text, "per_layer_attributes", None) or ()):
        raise _unsupported(name, text, "their heads differ from layer to layer")
    if not _has_managed_layers(text):
        raise _unsupported(name, text, "none of them keeps plain keys and values to select from")


def _has_managed_layers(text: Any) -> bool:
    try:
        layers = build_cache(text, 1, 0).layers
    except KeyError:  # a kind of layer that the cache of transformers does not know
        return False
    return any(isinstance(layer, KVStore) for layer in layers)


def _unsupported(name: str, text: Any, why: str) -> LoadError:
    return LoadError(
        f"the text model of {name} ({text.model_type}) has attention layers that are not supported: {why}",
        SUGGESTION,
    )
