"""A large run made by rule: 400 steps, 28 layers, 4 KV heads, 24 x 24 patches. Nothing decodes it."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from rcr_core.settings import Settings
from rcr_core.trace import PromptPiece, Trace, TraceMeta

N, L, H, S, SIDE = 400, 28, 4, 32, 24
P = SIDE * SIDE
TEXT, WINDOW = 8, 32  # tokens before the picture, and after it
WORDS = (" the", " dog", " is", " lying", " on", " a", " red", " couch", " next", " to", ",", " and", " lamp")


def synthetic_trace(policy: str) -> Trace:
    """A trace of a policy; two of them differ in the words from step 40 on, and in everything else."""
    rng = np.random.default_rng(sum(policy.encode()))
    refreshes = policy == "rcr"
    drift = (0.1 + 0.05 * rng.standard_normal((N, L))).clip(0, 1).astype(np.float32)
    tau = np.full((N, L), 0.1, np.float32) if refreshes else np.zeros((N, L), np.float32)
    fire = ((drift > tau) & refreshes).astype(np.uint8)
    fire[0] = drift[0] = tau[0] = 0
    selected, row = _selections(rng, fire)
    words = [
        WORDS[(step * 7 + (step > 40 and policy != "rcr") * step // 3) % len(WORDS)] for step in range(N)
    ]
    maps = _maps(rng)
    return Trace(
        meta=_meta(policy, words),
        tokens=np.array([WORDS.index(word) for word in words], np.int32),
        logprob=-rng.random(N, np.float32),
        top_ids=np.tile(np.arange(5, dtype=np.int32), (N, 1)),
        top_logprob=-np.sort(rng.random((N, 5), np.float32)),
        drift=drift,
        tau=tau,
        fire=fire,
        selected=selected,
        selected_row=row,
        mass=rng.dirichlet(np.ones(4), (N, L)).astype(np.float32),
        map_mean=maps[:, 0],
        map_mean_scale=rng.random(N, np.float32) / 10,
        map_layer=maps,
        map_layer_scale=rng.random((N, L), np.float32) / 10,
        missed_layer=maps[:, ::-1].copy(),
        missed_layer_scale=rng.random((N, L), np.float32) / 20,
        patch_position=np.arange(TEXT, TEXT + P, dtype=np.int32),
        image=_picture(),
        **_geometry(),
    )


def _selections(rng, fire):
    """A selection a refresh, at random; rows as a recorder numbers them."""
    prefix = TEXT + P
    rows, row_of, row = [], np.zeros(L, np.int32), np.zeros((N, L), np.int32)
    for step in range(N):
        for layer in range(L):
            if step == 0 or fire[step, layer]:
                rows.append([rng.choice(prefix, S, replace=False) for _ in range(H)])
                row_of[layer] = len(rows) - 1
        row[step] = row_of
    return np.asarray(rows, np.uint16), row


def _maps(rng):
    """A bright spot that wanders over the picture, u8 [N, L, P]."""
    y, x = np.mgrid[:SIDE, :SIDE]
    maps = np.empty((N, L, P), np.uint8)
    for step in range(N):
        centre = 12 + 9 * np.array([np.sin(step / 20), np.cos(step / 33)])
        spot = np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / 18).ravel()
        noise = rng.random((L, P), np.float32) * 0.3
        value = spot + noise
        maps[step] = 255 * value / value.max(-1, keepdims=True)
    return maps


def _meta(policy, words):
    return TraceMeta(
        model="synthetic",
        family="made by rule",
        processor="none",
        prompt="Describe.",
        prompt_pieces=[
            *(PromptPiece(f" w{at}", at, 1, "text") for at in range(TEXT)),
            PromptPiece("<image>", TEXT, P, "image"),
            *(PromptPiece(f" v{at}", TEXT + P + at, 1, "text") for at in range(WINDOW)),
        ],
        policy=policy,
        settings={**Settings(select=S).to_dict(), "max_new_tokens": N, "repetition_penalty": 1.0},
        image_size=[(480, 480)],
        prompt_length=TEXT + P + WINDOW,
        prefix_length=TEXT + P,
        window=WINDOW,
        layers=L,
        kv_heads=H,
        query_groups=7,
        head_dim=128,
        select=S,
        managed=[True] * L,
        token_text=words,
        stop_reason="length",
        dtype="float32",
        device="cpu",
        timings={"prefill": 0.5, "steps": [0.02] * (N - 1)},
    )


def _geometry():
    y, x = np.mgrid[:SIDE, :SIDE].reshape(2, -1)
    box = np.stack((x, y, x + 1, y + 1), -1).astype(np.float32) / SIDE
    still = np.zeros(P, np.int32)
    return {"patch_box": box, "patch_image": still, "patch_frame": still, "patch_level": still}


def _picture():
    y, x = np.mgrid[:480, :480]
    pixels = np.stack((x // 2, y // 2, np.full_like(x, 96)), -1).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)
