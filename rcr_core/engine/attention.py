"""The attention function that the engine registers with transformers.

Without a session it is stock SDPA, so a model that carries it still serves `generate`. With one it lets the
run's policy select after the full attention of the prefill and before the attention of every decode step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.cache_utils import Cache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from rcr_core.cache.store import KVStore
from rcr_core.policies import Policy

NAME = "rcr"


@dataclass(eq=False)
class RunState:
    """What a forward pass hands down to the attention of its layers.

    It must never grow a `.to`: accelerate calls that on every keyword that has it.
    """

    cache: Cache
    policy: Policy


@dataclass(eq=False)
class QueryProbe:
    """Handed down instead of a `RunState` to learn the query of a layer and nothing else."""

    query: Tensor | None = None


def attend(module, query, key, value, attention_mask, scaling=None, rcr=None, **kwargs):
    """The registered function: (output [1, T, H*G, D], None)."""
    if isinstance(rcr, QueryProbe):
        rcr.query = query
        return query.transpose(1, 2).contiguous(), None
    store = rcr.cache.layers[module.layer_idx] if rcr is not None else None
    managed = isinstance(store, KVStore)  # sliding layers pass through
    if managed and store.ready:
        output = rcr.policy.decode(module.layer_idx, query, store, scaling)
        if output is not None:
            return output.reshape(1, 1, query.shape[1], -1), None
    result = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    if managed and not store.ready:
        rcr.policy.prefill(module.layer_idx, query, store, scaling)
    return result


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)  # a name without a mask function gets no mask at all


def install(model: PreTrainedModel) -> None:
    """Make the text model attend through `attend`; the vision tower stays as it is."""
    text = model.config.get_text_config()
    part = next(name for name in model.config.sub_configs if getattr(model.config, name) is text)
    model.set_attn_implementation({part: NAME})


def attention_modules(model: PreTrainedModel) -> dict[int, torch.nn.Module]:
    """The text model's attention modules by layer; vision attention has no layer index."""
    found = {}
    for module in model.modules():
        index = getattr(module, "layer_idx", None)
        if isinstance(index, int) and hasattr(module, "num_key_value_groups"):
            found[index] = module
    return found
