"""Guess a layer's query one layer ahead, as InfiniGen does.

Layer l's query is computed from the input of layer l-1's attention by layer l's own attention module, so
biases, query norms and rotary positions are right; a probe stops it before it attends. Layers of another type
than the one before (full after sliding attention) may rotate otherwise, so they are not guessed and score
with their own query.
"""

from __future__ import annotations

from contextlib import contextmanager

from transformers import PreTrainedModel

from rcr_core.attention_math import scaled_query
from rcr_core.engine.attention import QueryProbe, RunState, attention_modules


@contextmanager
def guessed_queries(model: PreTrainedModel, state: RunState, cache_key: str):
    """While open, every decode step leaves guessed queries in `state.policy.guess`."""
    modules = attention_modules(model)
    handles = []

    def hook_for(layer: int):
        following = modules[layer + 1]

        def hook(module, args, kwargs):
            if kwargs.get("rcr") is not state:
                return
            probe = QueryProbe()
            following(*args, **{**kwargs, cache_key: None, "rcr": probe})
            heads = following.config.num_key_value_heads
            state.policy.guess[layer + 1] = scaled_query(probe.query, heads, following.scaling)

        return hook

    types = getattr(model.config.get_text_config(), "layer_types", None)
    for layer in sorted(modules)[:-1]:
        if types is not None and types[layer] != types[layer + 1]:
            continue
        handles.append(modules[layer].register_forward_pre_hook(hook_for(layer), with_kwargs=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
