"""How fast rows come from host memory: scattered, in pages, and all of them as one copy."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from rcr_core.bench.contests import Contest
from rcr_core.bench.section import Attempts, Column, Figures, wait
from rcr_core.cache.offload import HostRows
from rcr_core.engine import Engine
from rcr_core.settings import Settings

GATHERS = 64  # timed together
INDICES = 8  # sets of rows, so that no cache has them all
COLUMNS = (
    Column("rows", "rows of a KV head", "text"),
    Column("bytes", "MiB", "bytes"),
    Column("host seconds", "from host, us", "us"),
    Column("host bandwidth", "GB/s", "bandwidth"),
    Column("device seconds", "from device, us", "us"),
    Column("device bandwidth", "GB/s", "bandwidth"),
)


def gathers(contest: Contest, attempts: Attempts, settings: Settings) -> Figures:
    shape = Engine(contest.model).shape
    size = (shape.kv_heads, contest.length, shape.head_dim)
    rows = torch.randn(size, device=contest.device, dtype=contest.model.dtype)
    host = HostRows(rows)
    kinds = {
        f"{settings.select} (kept)": (settings.select, 1),
        f"{settings.candidate_count} (candidates)": (settings.candidate_count, 1),
        f"{settings.candidate_count} in pages of {settings.page}": (settings.candidate_count, settings.page),
    }
    found = []
    for name, (count, run) in kinds.items():
        indices = [random_rows(*size[:2], count, run, seed).to(contest.device) for seed in range(INDICES)]
        row = attempts.run(f"gather of {name}", lambda at=indices: gather_row(rows, host, at))
        if row is not None:
            found.append({"rows": name, **row})
    whole = attempts.run("copy of all keys", lambda: _copy_row(rows, host))
    if whole is not None:
        found.append({"rows": f"all {contest.length}, as one copy", **whole})
    way = "read in place by the device" if host.in_place else "gathered by the host, then copied"
    way = "in the memory of the device, which is the host" if contest.device.type == "cpu" else way
    note = f"{shape.kv_heads} KV heads of {shape.head_dim}, {contest.model.dtype}; rows are {way}."
    return Figures("gathers", "Reads from host memory", COLUMNS, found, note)


def random_rows(heads: int, length: int, count: int, run: int, seed: int) -> Tensor:
    """Flat row numbers int64 [heads * count], `run` consecutive rows at a time, by head."""
    generator = torch.Generator().manual_seed(seed)
    runs = min(count, length) // run
    starts = torch.stack([torch.randperm(length // run, generator=generator)[:runs] for _ in range(heads)])
    index = (starts.unsqueeze(2) * run + torch.arange(run)).flatten(1)
    return (index + torch.arange(heads).unsqueeze(1) * length).flatten()


def gather_row(rows: Tensor, host: HostRows, indices: list[Tensor]) -> dict[str, float]:
    """Seconds and bandwidth of a gather, from host memory and from the device's own."""
    own = rows.view(-1, rows.shape[-1])
    size = len(indices[0]) * rows.shape[-1] * rows.element_size()
    return {
        "bytes": size,
        **_timed("host", size, rows.device, lambda turn: host.read(indices[turn % len(indices)])),
        **_timed("device", size, rows.device, lambda turn: own.index_select(0, indices[turn % len(indices)])),
    }


def _copy_row(rows: Tensor, host: HostRows) -> dict[str, float]:
    into = torch.empty_like(rows)
    return {
        "bytes": rows.nbytes,
        **_timed("host", rows.nbytes, rows.device, lambda turn: into.copy_(host.host, non_blocking=True)),
        **_timed("device", rows.nbytes, rows.device, lambda turn: into.copy_(rows)),
    }


def _timed(where: str, size: int, device: torch.device, read: Callable[[int], object]) -> dict[str, float]:
    """The mean over `GATHERS` reads between two waits, after one that is not counted."""
    read(0)
    wait(device)
    begun = time.perf_counter()
    for turn in range(GATHERS):
        read(turn)
    wait(device)
    seconds = (time.perf_counter() - begun) / GATHERS
    return {f"{where} seconds": seconds, f"{where} bandwidth": size / seconds}
