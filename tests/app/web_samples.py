"""What the tests of the web routes share: a scripted run, its records, and a reader of batches."""

from __future__ import annotations

import json
import struct
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np

from rcr_core.trace import StepRecord, Trace, TraceBuilder, TraceMeta, VisualGeometry

F32, I32, U8 = np.float32, np.int32, np.uint8
LAYERS, HEADS, GROUPS, SELECT, PATCHES, TOP = (
    3,
    2,
    2,
    3,
    5,
    4,
)  # odd, so that nothing is aligned by luck
PREFIX = 9
OWNER, OTHER = "owner-token_0123456789", "another-browsers-token"
PNG = bytes.fromhex(  # one grey pixel
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c63680000008200817775f2c40000000049454e44ae426082"
)
NUMPY_TYPES = {"F32": "<f4", "I32": "<i4", "U32": "<u4", "U16": "<u2", "U8": "u1"}


def headers(owner: str = OWNER) -> dict[str, str]:
    return {"X-Scope-Owner": owner}


def unpack(data: bytes) -> tuple[dict, dict, dict[str, np.ndarray]]:
    """Metadata, state and arrays of a container, read by hand; each array must lie on its boundary."""
    length = struct.unpack("<Q", data[:8])[0]
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    metadata, arrays, end = header.pop("__metadata__"), {}, 0
    for name, entry in header.items():
        begin, stop = entry["data_offsets"]
        dtype = np.dtype(NUMPY_TYPES[entry["dtype"]])
        assert begin == end and begin % dtype.itemsize == 0, name
        arrays[name] = np.frombuffer(body[begin:stop], dtype).reshape(entry["shape"])
        end = stop
    assert end == len(body)
    return metadata, json.loads(metadata["state"]), arrays


def meta(**changes) -> TraceMeta:
    """A model whose first layer keeps its whole prefix."""
    values = {
        "model": "tiny",
        "family": "llava",
        "processor": "TinyProcessor",
        "prompt": "Déscribe.",
        "prompt_pieces": [],
        "policy": "rcr",
        "settings": {"select": SELECT, "window": 2},
        "image_size": [(1, 1)],
        "prompt_length": PREFIX + 2,
        "prefix_length": PREFIX,
        "window": 2,
        "layers": LAYERS,
        "kv_heads": HEADS,
        "query_groups": GROUPS,
        "head_dim": 4,
        "select": SELECT,
        "managed": [False, True, True],
    }
    return TraceMeta(**{**values, **changes})


def geometry(size: tuple[int, int] = (1, 1)) -> VisualGeometry:
    """The last token has no area, so that its box is NaN."""
    edges = np.linspace(0, 1, PATCHES + 1, dtype=F32)
    box = np.stack([edges[:-1], np.zeros(PATCHES, F32), edges[1:], np.ones(PATCHES, F32)], axis=1)
    box[-1] = np.nan
    zeros = np.zeros(PATCHES, I32)
    return VisualGeometry(
        position=np.arange(PATCHES, dtype=I32), image=zeros, frame=zeros, level=zeros, box=box, size=(size,)
    )


def record(step: int) -> StepRecord:
    """A step with every diagnostic. Its selections are new, repeat earlier ones, or change in one layer."""
    rng = np.random.default_rng(step)
    selected = np.stack([(np.arange(SELECT) + shift) % PREFIX for shift in (0, step // 3, step // 2)])
    maps = {
        "map_mean": (PATCHES,),
        "map_layer": (LAYERS, PATCHES),
        "missed_layer": (LAYERS, PATCHES),
        "map_full": (LAYERS, PATCHES),
        "map_head": (LAYERS, HEADS, PATCHES),
    }
    scales = {f"{name}_scale": rng.random(shape[:-1]).astype(F32) for name, shape in maps.items()}
    return StepRecord(
        step=step,
        token=100 + step,
        text=None if step == 2 else f" w{step}猫",
        logprob=-step / 8,
        top_ids=rng.integers(0, 99, TOP).astype(I32),
        top_logprob=-rng.random(TOP).astype(F32),
        drift=rng.random(LAYERS).astype(F32),
        tau=rng.random(LAYERS).astype(F32),
        fire=rng.integers(0, 2, LAYERS).astype(U8),
        whole=np.array([1, 0, 0], U8),
        selected=np.repeat(selected[:, None], HEADS, axis=1).astype(I32),
        mass=rng.random((LAYERS, 4)).astype(F32),
        drift_exact=rng.random(LAYERS).astype(F32),
        recall=rng.random(LAYERS).astype(F32),
        top_text=tuple(f"t{step}.{at}" for at in range(TOP)),
        seconds=0.5 + step / 8,
        **{name: rng.integers(0, 256, shape).astype(U8) for name, shape in maps.items()},
        **{**scales, "map_mean_scale": float(scales["map_mean_scale"])},
    )


class ScriptedRun:
    """A run whose steps come when the test says so: the part of a `CaptionRun` that a store uses."""

    def __init__(self, count: int, **changes):
        self.prompt = SimpleNamespace(prompt=meta(**changes).prompt)
        self.rehearses = False
        self._builder = TraceBuilder(meta(**changes), geometry(), (PNG,))
        self._count = count
        self._released = threading.Semaphore(0)
        self._stopped = False
        self._reason = ""

    def release(self, steps: int) -> None:
        for _ in range(steps):
            self._released.release()

    def stop(self) -> None:
        self._stopped = True
        self._released.release()

    def trace(self) -> Trace:
        return self._builder.snapshot(stop_reason=self._reason)

    def __iter__(self) -> Iterator[StepRecord]:
        for step in range(self._count):
            assert self._released.acquire(timeout=30)
            if self._stopped:
                break
            self._builder.append(record(step))
            yield record(step)
        self._reason = "stopped" if self._stopped else "length"


def sample_trace(steps: int = 7, image: bytes = PNG, size: tuple[int, int] = (1, 1), **changes) -> Trace:
    """A finished trace of the scripted steps."""
    builder = TraceBuilder(meta(image_size=[size], **changes), geometry(size), (image,))
    for step in range(steps):
        builder.append(record(step))
    return builder.snapshot(stop_reason="length")


def wait_until(true: Callable[[], object], seconds: float = 10.0) -> None:
    """Poll until `true()`; fail after `seconds`."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.002)
