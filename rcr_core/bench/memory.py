"""Bytes of keys and values on the device: measured, counted, and by the formula."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from rcr_core.bench.contests import Contest
from rcr_core.bench.section import Attempts, Column, Figures, free, wait
from rcr_core.cache import KVStore
from rcr_core.cost import device_vectors
from rcr_core.engine import Engine, Session
from rcr_core.policies import POLICIES, Policy, make_policy
from rcr_core.settings import Settings

STEPS = 8
COLUMNS = (
    Column("policy", "policy", "text"),
    Column("offload", "offload", "text"),
    Column("prefilled", "after prefill, MiB", "bytes"),
    Column("decoded", "after the steps, MiB", "bytes"),
    Column("formula", "by formula, MiB", "bytes"),
    Column("beside", "projections, MiB", "bytes"),
    Column("resident", "to decode, MiB", "bytes"),
    Column("host", "host, MiB", "bytes"),
    Column("peak", "peak of prefill, MiB", "bytes"),
)


@dataclass(frozen=True)
class Memory:
    """Bytes that a run holds beside the weights.

    prefilled, decoded, peak: on the device after the prefill, after the steps, and at most during the
    prefill; by the allocator on CUDA, else by counting tensors. counted: by counting after the steps, in any
    case; formula: of `device_vectors`; beside: what decides and is not as long as the prefix, which the
    formula leaves out; resident: live slots and what decides, all that a step touches unless it refreshes;
    host: the prefix in host memory.
    """

    prefilled: int
    decoded: int
    peak: int
    counted: int
    formula: int
    beside: int
    resident: int
    host: int


def memory(contest: Contest, name: str, settings: Settings, steps: int = STEPS) -> Memory:
    """What a run of `steps` tokens holds, on a model that nothing else runs on."""
    engine, policy = Engine(contest.model), make_policy(name, settings)
    meter = (_Allocator if contest.device.type == "cuda" else _Counter)(contest.device)
    meter.watch(policy)
    session = engine.start(contest.inputs, policy, steps)
    peak, prefilled = meter.peak, meter.held(session)
    for _ in range(steps):
        engine.step(session, engine.choose(session))
    stores = [store for store in session.stores if store is not None]
    depth = engine.shape.head_dim
    vectors = device_vectors(name, settings, stores[0].prefix, depth, generated=steps)
    return Memory(
        prefilled=prefilled,
        decoded=meter.held(session),
        peak=peak,
        counted=_counted(session),
        formula=round(vectors * depth * engine.shape.kv_heads * len(stores) * stores[0].keys.element_size()),
        beside=_projections(policy),
        resident=sum(store.resident_bytes for store in stores) + policy.decision_bytes,
        host=sum(store.aside_bytes for store in stores) if settings.offload != "none" else 0,
    )


def _counted(session: Session) -> int:
    held = sum(store.held_bytes for store in session.stores if store is not None)
    return held + session.policy.decision_bytes


def _projections(policy: Policy) -> int:
    """Bytes of the maps into fewer channels: the sketch's bases, InfiniGen's skews."""
    bases = [sketch.basis for sketch in policy.sketch.values()] if policy.sketches else []
    return sum(tensor.nbytes for tensor in (*bases, *getattr(policy, "projection", {}).values()))


class _Counter:
    """Counts tensors, where there is no allocator to ask."""

    def __init__(self, device: torch.device):
        self.peak = 0

    def watch(self, policy: Policy) -> None:
        """Note the most that all layers hold, while a layer has both its prompt and what it becomes."""
        stores: dict[int, KVStore] = {}
        prefill = policy.prefill

        def counted(layer, query, store, scale):
            stores[layer] = store
            prompt = store.held_bytes
            prefill(layer, query, store, scale)
            now = sum(one.held_bytes for one in stores.values()) + policy.decision_bytes
            self.peak = max(self.peak, prompt + now)

        policy.prefill = counted

    def held(self, session: Session) -> int:
        return _counted(session)


class _Allocator:
    """Asks the allocator of CUDA; what was there before the run (the weights) does not count."""

    def __init__(self, device: torch.device):
        self.device = device
        free()
        wait(device)
        self._before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)

    def watch(self, policy: Policy) -> None:
        pass

    @property
    def peak(self) -> int:
        wait(self.device)
        return torch.cuda.max_memory_allocated(self.device) - self._before

    def held(self, session: Session) -> int:
        free()
        wait(self.device)
        return torch.cuda.memory_allocated(self.device) - self._before


def memories(contest: Contest, attempts: Attempts, settings: Settings) -> list[Figures]:
    """A row a policy and place of the prefix."""
    rows = []
    for name in (name for name in POLICIES if name != "oracle"):
        for offload in ("none", "masked", "conditional") if name != "full" else ("none",):
            found = attempts.run(
                f"{name}, offload {offload}",
                lambda name=name, offload=offload: memory(contest, name, replace(settings, offload=offload)),
                attempts.seconds,
            )
            if found is not None:
                rows.append({"policy": name, "offload": offload, **vars(found)})
    return [Figures("memory", f"Memory: {contest.title}", COLUMNS, rows, _note(contest, attempts))]


def _note(contest: Contest, attempts: Attempts) -> str:
    if contest.device.type != "cuda":
        return (
            "CPU form: bytes of keys, values and what decides are counted; the peak is of these alone, and "
            "is noted after every layer."
        )
    bare = attempts.run("a forward pass without a cache", lambda: _bare(contest), attempts.seconds)
    words = f"; a forward pass without a cache peaks at {bare / 2**20:,.0f} MiB" if bare else ""
    return f"By the allocator, without the weights{words}."


def _bare(contest: Contest) -> int:
    """The peak that activations alone reach."""
    meter = _Allocator(contest.device)
    with torch.inference_mode():
        contest.model(**contest.inputs, use_cache=False, logits_to_keep=1)
    return meter.peak
