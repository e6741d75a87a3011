"""How many vectors an offloaded prefix is asked for, and how many of them are read, counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from rcr_core.bench.contests import Contest
from rcr_core.bench.section import Attempts, Column, Figures
from rcr_core.cache import OffloadedStore
from rcr_core.cost import cost
from rcr_core.engine import Engine
from rcr_core.policies import make_policy
from rcr_core.settings import Settings

READERS = ("exact", "threshold", "rcr", "quest", "arkvale", "infinigen")  # the one-shot policies never read
STEPS = 32  # until the controller has come down from its first refreshes
COLUMNS = (
    Column("policy", "policy", "text"),
    Column("offload", "offload", "text"),
    Column("rate", "refreshed", "ratio"),
    Column("formula", "by formula", "number"),
    Column("asked", "asked", "number"),
    Column("fetched", "fetched", "number"),
)


@dataclass(frozen=True)
class Reads:
    """Vectors per KV head and layer-step, as in `Cost`. rate: the realised share that refreshed."""

    rate: float
    formula: float
    asked: float
    fetched: float


def reads(contest: Contest, name: str, settings: Settings, steps: int = STEPS) -> Reads:
    """What an offloaded policy asks of its prefix and reads of it, counted, beside the formula."""
    engine = Engine(contest.model)
    policy = make_policy(name, settings, observe=True)  # tells which layers refreshed
    session = engine.start(contest.inputs, policy, steps)
    fired, asked, fetched = [], 0, 0
    for _ in range(steps):
        engine.step(session, engine.choose(session))
        stores = [store for store in session.stores if isinstance(store, OffloadedStore)]
        fired += [view.fire.float() for view in policy.views.values()]
        asked += sum(store.asked for store in stores)
        fetched += sum(store.fetched for store in stores)
    rate = torch.stack(fired).mean().item()
    every = 1.0 if settings.offload == "masked" else rate  # a masked merge reads whatever fires
    formula = cost(name, settings, stores[0].prefix, engine.shape.head_dim, every).reads
    cells = steps * len(stores) * engine.shape.kv_heads
    return Reads(rate, formula, asked / cells, fetched / cells)


def all_reads(contest: Contest, attempts: Attempts, settings: Settings) -> Figures:
    rows = []
    for name in READERS:
        for offload in ("masked", "conditional"):
            found = attempts.run(
                f"reads of {name}, {offload}",
                lambda name=name, offload=offload: reads(contest, name, replace(settings, offload=offload)),
                attempts.seconds,
            )
            if found is not None:
                rows.append({"policy": name, "offload": offload, **vars(found)})
    note = (
        "Vectors per KV head and layer-step; the formula at the realised rate, and at 1 where it is masked."
    )
    return Figures("reads", f"Reads: {contest.title}", COLUMNS, rows, note)
