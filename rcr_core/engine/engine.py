"""The engine: greedy decoding under one policy. `step` is the unit, `stream` a thin loop over it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, RepetitionPenaltyLogitsProcessor

from rcr_core.cache import KVStore, build_cache
from rcr_core.compatibility import cache_name
from rcr_core.engine.attention import RunState, install
from rcr_core.engine.lookahead import guessed_queries
from rcr_core.out_of_memory import memory_guard
from rcr_core.policies import Policy, Rehearsal

# One lock a model, whatever number of engines: the M-RoPE state of a forward pass lives on the model.
_LOCKS: WeakKeyDictionary[PreTrainedModel, threading.Lock] = WeakKeyDictionary()


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a text model, in the letters of the legend: L, H, G, D."""

    layers: int
    kv_heads: int
    query_groups: int
    head_dim: int

    @classmethod
    def of(cls, config: PreTrainedConfig) -> ModelShape:
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        depth = getattr(config, "head_dim", None) or config.hidden_size // heads
        return cls(config.num_hidden_layers, kv_heads, heads // kv_heads, depth)


@dataclass(eq=False)
class Session:
    """One run: cache, policy, place. `logits` float32 [1, V] chose, or will choose, token `step`.

    penalty, seen: with a repetition penalty, its processor and the tokens so far, int64 [1, T + generated].
    """

    state: RunState
    logits: Tensor | None = None
    step: int = 0
    rope_deltas: Tensor | None = None
    tokens: list[int] = field(default_factory=list)
    penalty: RepetitionPenaltyLogitsProcessor | None = None
    seen: Tensor | None = None

    @property
    def policy(self) -> Policy:
        return self.state.policy

    @property
    def stores(self) -> list[KVStore | None]:
        """The store of every layer, None for layers that are passed through."""
        return [layer if isinstance(layer, KVStore) else None for layer in self.state.cache.layers]


class Engine:
    """Decodes on one model, one forward pass at a time; interleaved sessions keep their own state."""

    def __init__(self, model: PreTrainedModel):
        self.model = model.eval()
        self.lock = _LOCKS.setdefault(model, threading.Lock())
        install(model)
        self.cache_key = cache_name(model)
        self.text_config = model.config.get_text_config()
        self.shape = ModelShape.of(self.text_config)
        self._mrope = hasattr(model.model, "rope_deltas")

    @property
    def device(self) -> torch.device:
        """Where the model's inputs go."""
        return self.model.device

    def managed_layers(self, length: int) -> tuple[bool, ...]:
        """Which layers a policy manages in a run of `length` tokens; the others are passed through."""
        layers = build_cache(self.text_config, length, 0).layers
        return tuple(isinstance(layer, KVStore) for layer in layers)

    def start(
        self, inputs: dict[str, Tensor], policy: Policy, max_new_tokens: int, penalty: float = 1.0
    ) -> Session:
        """Prefill: full attention over the prompt, then the policy's selection. `logits` choose token 0.

        `penalty` other than 1 makes tokens that were seen less likely, as `generate` does when asked to.
        """
        length, offload = inputs["input_ids"].shape[1], policy.settings.offload
        cache = build_cache(self.text_config, length, max_new_tokens, offload)
        session = Session(RunState(cache, policy))
        if penalty != 1.0:
            session.penalty = RepetitionPenaltyLogitsProcessor(float(penalty))
            session.seen = inputs["input_ids"]
        policy.begin_step(0)
        with self.lock:
            if self._mrope:
                self.model.model.rope_deltas = None  # a text-only prompt would inherit the last picture's
            session.logits = self._forward(session, inputs)
            if self._mrope:
                session.rope_deltas = self.model.model.rope_deltas
        return session

    def step(self, session: Session, token: Tensor) -> None:
        """Feed the token chosen last (int64 [1, 1]), leave the next logits. Never waits for the host."""
        session.step += 1
        if session.penalty is not None:
            session.seen = torch.cat((session.seen, token), dim=-1)
        session.policy.begin_step(session.step)
        with self.lock:
            if self._mrope:
                self.model.model.rope_deltas = session.rope_deltas
            guess = guessed_queries(self.model, session.state, self.cache_key)
            with guess if session.policy.guesses else nullcontext():
                session.logits = self._forward(session, {"input_ids": token, **_positions(session)})
        session.policy.end_step()

    def stream(
        self,
        inputs: dict[str, Tensor],
        policy: Policy,
        max_new_tokens: int,
        stop_ids: frozenset[int] = frozenset(),
        replay: tuple[int, ...] = (),
        penalty: float = 1.0,
    ) -> Iterator[Session]:
        """Yield the session once per chosen token, after `tokens` got it; `replay` dictates the first tokens.

        Ends after a stop token or `max_new_tokens`; close it to stop earlier.
        """
        if max_new_tokens < 1:
            return
        session = self.start(inputs, policy, max_new_tokens, penalty)
        while True:
            token = self.choose(session, replay)
            session.tokens.append(int(token))  # the one host copy of a step
            yield session
            if session.tokens[-1] in stop_ids or len(session.tokens) == max_new_tokens:
                return
            self.step(session, token)

    @staticmethod
    def choose(session: Session, replay: tuple[int, ...] = ()) -> Tensor:
        """The next token, int64 [1, 1]: greedy, or the replayed one."""
        if session.step < len(replay):
            return torch.full((1, 1), replay[session.step], device=session.logits.device)
        logits = session.logits
        if session.penalty is not None:
            logits = session.penalty(session.seen, logits)
        return logits.argmax(-1, keepdim=True)

    def rehearse(
        self,
        inputs: dict[str, Tensor],
        policy: Policy,
        max_new_tokens: int,
        stop_ids: frozenset[int] = frozenset(),
        penalty: float = 1.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Give the prefill oracle what it needs: the summed attention of an uncompressed run."""
        rehearsal = Rehearsal(policy.settings)
        for _ in self.stream(inputs, rehearsal, max_new_tokens, stop_ids, penalty=penalty):
            if stopped():
                break
        policy.sums = rehearsal.sums

    @torch.inference_mode()
    def _forward(self, session: Session, inputs: dict[str, Tensor]) -> Tensor:
        with memory_guard():
            result = self.model(
                **inputs,
                **{self.cache_key: session.state.cache},
                use_cache=True,
                logits_to_keep=1,
                rcr=session.state,
            )
        return result.logits[:, -1].float()


def _positions(session: Session) -> dict[str, Tensor]:
    """M-RoPE positions of the next token. Left to the model they are made on the host, and a GPU waits."""
    if session.rope_deltas is None:
        return {}
    return {"position_ids": (session.rope_deltas + session.state.cache.get_seq_length()).expand(3, 1, 1)}
