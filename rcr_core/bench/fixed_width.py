"""The decode step in static-width form: the same step with no shape, and no number on the host, that changes.

Attention runs over whole buffers under a mask `arange(width) > n`, with n on the device; positions and the
token are fed from there as well, and all that a step decides is written back to where the next one reads it.
In this form a step can be captured as one CUDA graph and replayed.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import Cache

from rcr_core.attention_math import logits_of
from rcr_core.bench.contests import Contest
from rcr_core.bench.section import wait
from rcr_core.cache import KVStore
from rcr_core.engine import Engine
from rcr_core.policies import Policy

WARM_UPS = 3  # before a capture, as torch asks for


class FixedWidthStore(KVStore):
    """Takes over a store whose prompt was taken apart. All of its slots take part, under a mask.

    at: int64 [1], the slot of this step's token; beyond: bool [width], the slots after it.
    """

    def __init__(self, store: KVStore, at: Tensor, beyond: Tensor):
        super().__init__(store.room)
        vars(self).update(vars(store))
        self._slots[:, :, self.live :] = 0.0  # weights are 0 there, and 0 times whatever was there may be NaN
        self.at, self.beyond = at, beyond

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        self.keys.index_copy_(2, self.at, key_states)
        self.values.index_copy_(2, self.at, value_states)
        return self.keys, self.values

    def live_keys(self) -> Tensor:
        return self.keys[0]

    def live_values(self) -> Tensor:
        return self.values[0]

    def logits(self, query: Tensor) -> Tensor:
        return logits_of(query, self.keys[0]).masked_fill(self.beyond, float("-inf"))


class FixedWidthDecode:
    """Decodes a contest where every layer evicts; `token` int64 [1, 1] comes next.

    The policy must see live slots through `KVStore.logits` alone, as all do but exact and InfiniGen.
    """

    @torch.inference_mode()
    def __init__(self, engine: Engine, contest: Contest, policy: Policy, room: int):
        self.engine, self.policy, self.device = engine, policy, contest.device
        session = engine.start(contest.inputs, policy, room)
        first = session.stores[0]
        width = first.keys.shape[2]
        self._slots = torch.arange(width, device=self.device)
        self._at = torch.full((1,), first.live, device=self.device)
        self._beyond = torch.zeros(width, dtype=torch.bool, device=self.device)
        self._stores = [FixedWidthStore(store, self._at, self._beyond) for store in session.stores]
        session.state.cache = Cache(layers=list(self._stores))
        self._state = session.state
        self._selected = [store.selected for store in self._stores]
        controller = getattr(policy, "controller", None)
        self._tau = None if controller is None else controller.tau
        self._position = torch.full((3, 1, 1), contest.length, device=self.device)
        if session.rope_deltas is not None:
            self._position += session.rope_deltas
        self.token = engine.choose(session)
        self.first = [int(self.token)]  # the tokens that are there when decoding begins

    @torch.inference_mode()
    def advance(self) -> None:
        """One step: feed `token`, leave the next one in its place. Nothing here depends on the step."""
        self.policy.begin_step(1)
        torch.gt(self._slots, self._at, out=self._beyond)
        with self.engine.lock:
            result = self.engine.model(
                input_ids=self.token,
                position_ids=self._position,
                **{self.engine.cache_key: self._state.cache},
                use_cache=True,
                logits_to_keep=1,
                rcr=self._state,
            )
        self.policy.end_step()
        self._carry_over()
        self.token.copy_(result.logits[:, -1].float().argmax(-1, keepdim=True))
        self._at.add_(1)
        self._position.add_(1)

    def _carry_over(self) -> None:
        """What a step decides is a new tensor; the next step looks for it where it was."""
        for store, selected in zip(self._stores, self._selected, strict=True):
            if store.selected is not selected:
                store.selected = selected.copy_(store.selected)
        if self._tau is not None and self.policy.controller.tau is not self._tau:
            self.policy.controller.tau = self._tau.copy_(self.policy.controller.tau)

    def steps(self, count: int) -> list[float]:
        """Seconds of each of `count` decode steps, the host copy of a token included."""
        wait(self.device)
        at = [time.perf_counter()]
        for _ in range(count):
            int(self.token)
            self.advance()
            wait(self.device)
            at.append(time.perf_counter())
        return list(np.diff(at))


class ReplayedDecode(FixedWidthDecode):
    """The same, captured as one CUDA graph."""

    def __init__(self, engine: Engine, contest: Contest, policy: Policy, room: int):
        super().__init__(engine, contest, policy, room + WARM_UPS)
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                super().advance()
                self.first.append(int(self.token))
        torch.cuda.current_stream(self.device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            super().advance()  # is captured, not run

    def advance(self) -> None:
        self._graph.replay()
