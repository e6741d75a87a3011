"""Speed and memory of every policy against plain `generate`, interleaved in one process.

Steps of all contestants are measured in rounds, so that a busy machine slows all of them alike; the figures
are medians over rounds, and what counts is their ratio.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import Qwen3VLForConditionalGeneration, StoppingCriteria, StoppingCriteriaList

from rcr_core.bundled.captioner import build_config, build_tokenizer
from rcr_core.engine import Engine, Recorder
from rcr_core.engine.engine import ModelShape
from rcr_core.policies import POLICIES, Policy, make_policy
from rcr_core.settings import Settings
from rcr_core.trace import VisualGeometry


@dataclass(frozen=True)
class Contest:
    """A model and a prompt; `geometry` is where its visual tokens lie (all of the prefix, for a random
    model).
    """

    title: str
    model: torch.nn.Module
    inputs: dict[str, Tensor]
    geometry: VisualGeometry

    @property
    def length(self) -> int:
        return self.inputs["input_ids"].shape[1]


def random_contest(prefix: int, device: str = "cpu", layers: int = 8, seed: int = 0) -> Contest:
    """A random 256-wide text model, 8 query and 2 KV heads, with a prompt of `prefix` + 32 random tokens."""
    config = build_config(build_tokenizer())
    text = config.text_config
    text.num_hidden_layers, text.num_attention_heads, text.num_key_value_heads = layers, 8, 2
    text.max_position_embeddings = 1 << 20
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(config).eval().to(device)
    generator = torch.Generator().manual_seed(seed)
    length = prefix + 32
    ids = torch.randint(20, text.vocab_size, (1, length), generator=generator)
    count = min(prefix, 2880)
    zeros = np.zeros(count, np.int32)
    box = np.tile(np.float32([0.0, 0.0, 1.0, 1.0]), (count, 1))
    geometry = VisualGeometry(np.arange(count, dtype=np.int32), zeros, zeros, zeros, box, ((64, 64),))
    return Contest(
        f"random {layers}-layer model, prefix {prefix}", model, {"input_ids": ids.to(device)}, geometry
    )


def step_seconds(
    contest: Contest, runs: dict[str, Callable[[], list[float]]], rounds: int
) -> dict[str, float]:
    """Median seconds of a decode step, by contestant; every round runs all of them once, in turn."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(statistics.median(run()))
    return {name: statistics.median(values) for name, values in times.items()}


def generate_steps(contest: Contest, steps: int) -> Callable[[], list[float]]:
    """Seconds of each decode step of stock `generate`, greedy, with its own attention and cache."""
    attended = {**contest.inputs, "attention_mask": torch.ones_like(contest.inputs["input_ids"])}

    def run() -> list[float]:
        clock = _Clock()
        contest.model.generate(
            **attended,
            do_sample=False,
            max_new_tokens=steps + 1,
            eos_token_id=None,
            stopping_criteria=StoppingCriteriaList([clock]),
        )
        return clock.steps()

    return run


class _Clock(StoppingCriteria):
    """Notes when each token of a `generate` is done; never stops it."""

    def __init__(self):
        self.at: list[float] = []

    def __call__(self, input_ids, scores, **kwargs):
        _wait(input_ids.device)
        self.at.append(time.perf_counter())
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)

    def steps(self) -> list[float]:
        return list(np.diff(self.at))


def policy_steps(
    engine: Engine, contest: Contest, name: str, settings: Settings, steps: int, traced: bool
) -> Callable[[], list[float]]:
    """Seconds of each decode step under a policy, with every step recorded or not."""
    device = contest.inputs["input_ids"].device

    def run() -> list[float]:
        policy = make_policy(name, settings, observe=traced)
        if policy.rehearses:
            engine.rehearse(contest.inputs, policy, steps, frozenset())
        shape = ModelShape.of(contest.model.config.get_text_config())
        recorder = Recorder(contest.geometry, contest.length, shape, settings.select, device)

        def take(session, token):
            return recorder.record(session, token, str, 0.0).token

        at = []
        for _ in engine.stream(contest.inputs, policy, steps + 1, take=take if traced else None):
            _wait(device)
            at.append(time.perf_counter())
        return list(np.diff(at))

    return run


def prefill_seconds(engine: Engine, contest: Contest, settings: Settings, rounds: int) -> dict[str, float]:
    """Median seconds of a plain prefill and of one with BACON scoring, compaction and sketch."""
    times: dict[str, list[float]] = {"plain": [], "rcr": []}
    device = contest.inputs["input_ids"].device
    for _ in range(rounds):
        begun = time.perf_counter()
        with torch.no_grad():
            contest.model(**contest.inputs, use_cache=True, logits_to_keep=1)
        _wait(device)
        times["plain"].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        engine.start(contest.inputs, make_policy("rcr", settings), 64)
        _wait(device)
        times["rcr"].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


@dataclass(frozen=True)
class Memory:
    """Bytes of keys and values. resident: live slots plus what the policy decides with; aside: the full
    prefix, which a deployment holds in CPU memory; peak: the most that all layers held at once, counted after
    every layer of the prefill and every step.
    """

    resident: int
    aside: int
    peak: int


def memory(engine: Engine, contest: Contest, name: str, settings: Settings, steps: int = 8) -> Memory:
    """Keys and values held by a run, by counting tensors."""
    policy = make_policy(name, settings)
    if policy.rehearses:
        engine.rehearse(contest.inputs, policy, steps, frozenset())
    peak = 0
    prefill = policy.prefill
    seen = {}

    def counted(layer, query, store, scale):
        nonlocal peak
        seen[layer] = store
        peak = max(peak, sum(one.held_bytes for one in seen.values()))
        prefill(layer, query, store, scale)
        peak = max(peak, sum(one.held_bytes for one in seen.values()))

    policy.prefill = counted
    for session in engine.stream(contest.inputs, policy, steps):
        stores = [store for store in session.stores if store is not None]
        peak = max(peak, sum(store.held_bytes for store in stores))
    resident = sum(store.resident_bytes for store in stores) + decision_bytes(policy)
    return Memory(resident, sum(store.aside_bytes for store in stores), peak)


def decision_bytes(policy: Policy) -> int:
    """What a policy keeps on the device to decide with: sketches, page digests, partial keys."""
    kept = [*policy.sketch.values(), *getattr(policy, "pages", {}).values()]
    tensors = [*getattr(policy, "partial", {}).values(), *getattr(policy, "projection", {}).values()]
    return sum(one.resident_bytes for one in kept) + sum(tensor.nbytes for tensor in tensors)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


ALL = tuple(POLICIES)
