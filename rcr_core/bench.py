"""Speed and memory of the policies against plain `generate`, interleaved in one process.

Every contestant is prefilled once and then takes turns of a few decode steps, so that a busy machine slows
all of them alike. The figures are medians over all steps; what counts is their ratio.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import (
    DynamicCache,
    Qwen3VLForConditionalGeneration,
    StoppingCriteria,
    StoppingCriteriaList,
)

from rcr_core.bundled.captioner import build_config, build_tokenizer
from rcr_core.engine import Engine, Recorder, TextStream
from rcr_core.policies import Policy, make_policy
from rcr_core.settings import Settings
from rcr_core.trace import TraceBuilder, TraceMeta, VisualGeometry


@dataclass(frozen=True, eq=False)
class Contest:
    """A model, its tokenizer and a prompt; `geometry` is where its visual tokens lie."""

    title: str
    model: Any
    tokenizer: Any
    inputs: dict[str, Tensor]
    geometry: VisualGeometry

    @property
    def length(self) -> int:
        return self.inputs["input_ids"].shape[1]

    @property
    def device(self) -> torch.device:
        return self.inputs["input_ids"].device


def random_contest(prefix: int, device: str = "cpu", layers: int = 8, seed: int = 0) -> Contest:
    """A random 256-wide text model, 8 query and 2 KV heads, with a prompt of `prefix` + 32 random tokens.

    The trace records maps over as many "patches" as a large image has (at most 2,880).
    """
    tokenizer = build_tokenizer()
    config = build_config(tokenizer)
    text = config.text_config
    text.num_hidden_layers, text.num_attention_heads, text.num_key_value_heads = layers, 8, 2
    text.max_position_embeddings = 1 << 20
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(config).eval().to(device)
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(20, text.vocab_size, (1, prefix + 32), generator=generator)
    count = min(prefix, 2880)
    zeros = np.zeros(count, np.int32)
    box = np.tile(np.float32([0.0, 0.0, 1.0, 1.0]), (count, 1))
    geometry = VisualGeometry(np.arange(count, dtype=np.int32), zeros, zeros, zeros, box, ((64, 64),))
    title = f"random model of {layers} layers, 256 wide, prefix {prefix}"
    return Contest(title, model, tokenizer, {"input_ids": ids.to(device)}, geometry)


class Generate:
    """Stock greedy `generate`, from a prefilled stock cache where the prompt is text only.

    It starts at the prompt again in every turn, while the policies go on and have more to attend to.
    """

    def __init__(self, contest: Contest):
        self.contest = contest
        self.inputs = {**contest.inputs, "attention_mask": torch.ones_like(contest.inputs["input_ids"])}
        self.cache = None
        if "pixel_values" not in contest.inputs:
            self.cache = DynamicCache(config=contest.model.config.get_text_config())
            with torch.no_grad():
                contest.model(**contest.inputs, cache=self.cache, use_cache=True, logits_to_keep=1)

    def steps(self, count: int) -> list[float]:
        """Seconds of each of `count` decode steps."""
        clock = _Clock()
        kept = {}
        if self.cache is not None:
            self.cache.crop(self.contest.length - 1 - self.cache.get_seq_length())
            kept = {"cache": self.cache}
        self.contest.model.generate(
            **self.inputs,
            **kept,
            do_sample=False,
            max_new_tokens=count + 1,
            eos_token_id=None,
            stopping_criteria=StoppingCriteriaList([clock]),
        )
        return list(np.diff(clock.at))


class _Clock(StoppingCriteria):
    """Notes when each token of a `generate` is done; never stops it."""

    def __init__(self):
        self.at: list[float] = []

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs) -> Tensor:
        _wait(input_ids.device)
        self.at.append(time.perf_counter())
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


class Decode:
    """Decoding under a policy; traced, every step is recorded and appended to a trace, as in a real run."""

    def __init__(self, engine: Engine, contest: Contest, policy: Policy, room: int, traced: bool = False):
        self.engine, self.device = engine, contest.device
        self.session = engine.start(contest.inputs, policy, room)
        self.recorder = None
        if traced:
            select = policy.settings.select
            self.recorder = Recorder(contest.geometry, contest.length, engine.shape, select, contest.device)
            self.builder = TraceBuilder(_meta(engine, contest, policy), contest.geometry)
            self.text = TextStream(contest.tokenizer)

    def steps(self, count: int) -> list[float]:
        """Seconds of each of `count` decode steps, the choice of a token and its host copy included."""
        at = [time.perf_counter()]
        for _ in range(count):
            token = self.engine.choose(self.session)
            if self.recorder is None:
                int(token)
            else:
                record = self.recorder.record(self.session, token, self.text.push, at[-1])
                self.builder.append(record)
            self.engine.step(self.session, token)
            _wait(self.device)
            at.append(time.perf_counter())
        return list(np.diff(at))


def step_seconds(contest: Contest, names: tuple[str, ...], rounds: int, steps: int) -> dict[str, float]:
    """Median seconds of a decode step, by contestant: `generate`, a policy, or "POLICY, traced"."""
    engine = Engine(contest.model)
    contestants = {name: _contestant(engine, contest, name, rounds * steps + 1) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            times[name] += contestant.steps(steps)
    return {name: statistics.median(values) for name, values in times.items()}


def _contestant(engine: Engine, contest: Contest, name: str, room: int) -> Generate | Decode:
    if name == "generate":
        return Generate(contest)
    policy, _, traced = name.partition(", ")
    return Decode(engine, contest, make_policy(policy, Settings(), observe=bool(traced)), room, bool(traced))


def _meta(engine: Engine, contest: Contest, policy: Policy) -> TraceMeta:
    shape, settings = engine.shape, policy.settings
    return TraceMeta(
        model=contest.title,
        family=engine.text_config.model_type,
        processor="",
        prompt="",
        prompt_pieces=(),
        policy=policy.name,
        settings=settings.to_dict(),
        image_size=contest.geometry.size,
        prompt_length=contest.length,
        prefix_length=contest.length - settings.window,
        window=settings.window,
        layers=shape.layers,
        kv_heads=shape.kv_heads,
        query_groups=shape.query_groups,
        head_dim=shape.head_dim,
        select=settings.select,
        managed=engine.managed_layers(contest.length),
    )


def prefill_seconds(contest: Contest, rounds: int) -> dict[str, float]:
    """Median seconds of a plain prefill and of one with BACON scoring, compaction and sketch."""
    engine = Engine(contest.model)
    times: dict[str, list[float]] = {"plain prefill": [], "prefill with BACON and sketch": []}
    for _ in range(rounds):
        for name, values in times.items():
            begun = time.perf_counter()
            if name == "plain prefill":
                with torch.no_grad():
                    contest.model(**contest.inputs, use_cache=True, logits_to_keep=1)
            else:
                engine.start(contest.inputs, make_policy("rcr", Settings()), 64)
            _wait(contest.device)
            values.append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


@dataclass(frozen=True)
class Memory:
    """Bytes of keys and values, by counting tensors.

    resident: live slots plus what the policy decides with; aside: the full prefix, which a deployment holds
    in CPU memory; peak: the most that all layers held at once, after any layer of the prefill and any step.
    """

    resident: int
    aside: int
    peak: int


def memory(contest: Contest, name: str, steps: int = 8) -> Memory:
    """What a run of `steps` tokens holds."""
    engine, policy = Engine(contest.model), make_policy(name, Settings())
    held: list[int] = []
    stores: dict[int, Any] = {}
    prefill = policy.prefill

    def counted(layer, query, store, scale):
        stores[layer] = store
        held.append(sum(one.held_bytes for one in stores.values()))
        prefill(layer, query, store, scale)
        held.append(sum(one.held_bytes for one in stores.values()))

    policy.prefill = counted
    for _ in engine.stream(contest.inputs, policy, steps):
        held.append(sum(one.held_bytes for one in stores.values()))
    resident = sum(store.resident_bytes for store in stores.values()) + policy.decision_bytes
    return Memory(resident, sum(store.aside_bytes for store in stores.values()), max(held))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
