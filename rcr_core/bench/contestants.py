"""Step times of the policies beside plain `generate`, interleaved in one process.

Every contestant is prefilled once and then takes turns of a few decode steps, so that a busy machine slows
all of them alike. The figures are medians over all steps; what counts is their ratio.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, StoppingCriteria, StoppingCriteriaList

from rcr_core.bench.contests import Contest
from rcr_core.bench.section import wait
from rcr_core.compatibility import cache_name
from rcr_core.engine import Engine, Recorder, TextStream
from rcr_core.policies import Policy, make_policy
from rcr_core.settings import Settings
from rcr_core.trace import TraceBuilder, TraceMeta

GENERATE = "generate"


class Contestant(Protocol):
    """Prefilled and ready to decode."""

    def steps(self, count: int) -> list[float]:
        """Seconds of each of `count` decode steps."""


class Enters(Protocol):
    """What can take part in a contest."""

    def enter(self, engine: Engine, contest: Contest, room: int) -> Contestant:
        """Prefilled, with room for that many tokens."""


@dataclass(frozen=True)
class Entrant:
    """Who takes part: `generate`, or a policy under its settings; traced: recorded as a real run is."""

    policy: str
    settings: Settings = Settings()
    traced: bool = False

    @property
    def name(self) -> str:
        return f"{self.policy}, traced" if self.traced else self.policy

    def enter(self, engine: Engine, contest: Contest, room: int) -> Contestant:
        if self.policy == GENERATE:
            return Generate(contest)
        policy = make_policy(self.policy, self.settings, observe=self.traced)
        return Decode(engine, contest, policy, room, self.traced)


class Generate:
    """Stock greedy `generate`, from a prefilled stock cache where the prompt is text only.

    It starts at the prompt again in every turn, while the policies go on and have more to attend to.
    """

    def __init__(self, contest: Contest):
        self.contest = contest
        self.inputs = {**contest.inputs, "attention_mask": torch.ones_like(contest.inputs["input_ids"])}
        self.cache, self.kept = None, {}
        if "pixel_values" not in contest.inputs:
            self.cache = DynamicCache(config=contest.model.config.get_text_config())
            self.kept = {cache_name(contest.model): self.cache}
            with torch.no_grad():
                contest.model(**contest.inputs, **self.kept, use_cache=True, logits_to_keep=1)

    def steps(self, count: int) -> list[float]:
        """Seconds of each of `count` decode steps."""
        clock = _Clock()
        if self.cache is not None:
            self.cache.crop(self.contest.length - 1 - self.cache.get_seq_length())
        self.contest.model.generate(
            **self.inputs,
            **self.kept,
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
        wait(input_ids.device)
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
        wait(self.device)
        at = [time.perf_counter()]
        for _ in range(count):
            token = self.engine.choose(self.session)
            if self.recorder is None:
                int(token)
            else:
                record = self.recorder.record(self.session, token, self.text.push, at[-1])
                self.builder.append(record)
            self.engine.step(self.session, token)
            wait(self.device)
            at.append(time.perf_counter())
        return list(np.diff(at))


@dataclass(frozen=True)
class Times:
    """Median seconds of a decode step by contestant, over `rounds` turns each."""

    seconds: dict[str, float]
    rounds: int


def step_times(
    contest: Contest,
    entrants: dict[str, Enters],
    rounds: int,
    steps: int,
    enough: Callable[[], bool] = lambda: False,
) -> Times:
    """Let the entrants take turns of `steps` decode steps until `rounds` are over, or it is `enough`."""
    engine = Engine(contest.model)
    running = {name: entrant.enter(engine, contest, rounds * steps + 1) for name, entrant in entrants.items()}
    times: dict[str, list[float]] = {name: [] for name in entrants}
    done = 0
    while done < rounds and not (done and enough()):
        for name, contestant in running.items():
            times[name] += contestant.steps(steps)
        done += 1
    return Times({name: statistics.median(values) for name, values in times.items()}, done)


def prefill_seconds(contest: Contest, rounds: int) -> dict[str, float]:
    """Median seconds of a plain prefill and of one with BACON scoring, compaction and sketch."""
    engine = Engine(contest.model)
    times: dict[str, list[float]] = {"plain prefill": [], "prefill with BACON and sketch": []}
    for _ in range(rounds):
        for name, values in times.items():
            wait(contest.device)
            begun = time.perf_counter()
            if name == "plain prefill":
                with torch.no_grad():
                    contest.model(**contest.inputs, use_cache=True, logits_to_keep=1)
            else:
                engine.start(contest.inputs, make_policy("rcr", Settings()), 64)
            wait(contest.device)
            values.append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in times.items()}


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
