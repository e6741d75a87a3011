"""Small runs made by rule, in the shapes that pictures and models come in. Every number in them is random."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from rcr_core.settings import Settings
from rcr_core.trace import PromptPiece, Trace, TraceMeta

N, L, H, S = 24, 6, 3, 10
BEFORE, WINDOW, IN_WINDOW = 5, 8, 3  # prompt tokens; the last IN_WINDOW patches lie in the window
WHOLE_LAYER, SLIDING_LAYER = 0, 1  # a layer that keeps its whole prefix, and one that no policy manages
GREY = 96  # of the picture, everywhere
WORDS = (" a", " small", " red", " square", " at", " the", " left", "\n", ",", " and", " no", " more")


@dataclass(frozen=True)
class Shape:
    """Where P patches lie on pictures of these sizes."""

    box: np.ndarray  # [P, 4]
    sizes: list[tuple[int, int]]  # height, width
    image: np.ndarray | int = 0  # [P]
    level: np.ndarray | int = 0  # [P]

    @property
    def count(self) -> int:
        return len(self.box)

    def column(self, name: str) -> np.ndarray:
        return np.broadcast_to(np.asarray(getattr(self, name), np.int32), self.count).copy()


def grid(columns: int, rows: int, cut: float = 1.0) -> np.ndarray:
    """Boxes row by row; `cut` is the share of the last column that still lies on the picture."""
    x = np.append(np.arange(columns), columns - 1 + cut) / (columns - 1 + cut)
    y = np.arange(rows + 1) / rows
    return np.array(
        [(x[i], y[j], x[i + 1], y[j + 1]) for j in range(rows) for i in range(columns)], np.float32
    )


def tiled() -> Shape:
    """An overview of 6 x 6, then tiles of 16 x 12; each of their rows ends with a token without a box."""
    fine = grid(16, 12, cut=0.5).reshape(12, 16, 4)
    nowhere = np.full((12, 1, 4), np.nan, np.float32)
    fine = np.concatenate((fine, nowhere), axis=1).reshape(-1, 4)
    level = np.repeat((0, 1), (36, len(fine)))
    return Shape(np.concatenate((grid(6, 6), fine)), [(360, 480)], level=level)


SHAPES = {
    "square": Shape(grid(12, 12), [(480, 480)]),
    "wide": Shape(grid(21, 9), [(270, 630)]),
    "tall": Shape(grid(5, 24), [(720, 150)]),
    "tiled": tiled(),
    "several": Shape(
        np.concatenate((grid(8, 8), grid(5, 5), grid(4, 9))),
        [(400, 400), (200, 200), (270, 120)],
        np.repeat((0, 1, 2), (64, 25, 36)),
    ),
}


def made_trace(shape: str, policy: str = "rcr", layers: int = L, seed: int = 0) -> Trace:
    """A run of N steps; "rcr" refreshes by drift, "bacon" keeps its selection, "full" keeps everything."""
    rng = np.random.default_rng([seed, layers, *policy.encode(), *shape.encode()])
    place = SHAPES[shape]
    managed = np.arange(layers) != SLIDING_LAYER
    decides = managed & (np.arange(layers) != WHOLE_LAYER) & (policy != "full")
    deciding = decides & (np.arange(N) > 0)[:, None]
    drift = np.where(deciding, rng.random((N, layers), np.float32) ** 3, 0).astype(np.float32)
    tau = np.where(deciding & (policy == "rcr"), 0.05 + 0.1 * rng.random((N, layers)), 0).astype(np.float32)
    fire = (deciding & (policy == "rcr") & (drift > tau)).astype(np.uint8)
    if policy == "rcr":
        fire[7, -1] ^= 1  # as an edit does
    selected, row = selections(rng, decides, fire, BEFORE + place.count - IN_WINDOW)
    files = [picture(*size) for size in place.sizes]
    return Trace(
        meta=metadata(place, policy, managed, rng),
        tokens=rng.integers(0, 9, N, np.int32),
        logprob=-rng.random(N, np.float32),
        top_ids=rng.integers(0, 9, (N, 5), np.int32),
        top_logprob=-np.sort(5 * rng.random((N, 5), np.float32)),
        drift=drift,
        tau=tau,
        fire=fire,
        selected=selected,
        selected_row=row,
        mass=rng.dirichlet(np.ones(4), (N, layers)).astype(np.float32),
        **maps(rng, layers, place.count),
        missed=np.where(deciding, rng.random((N, layers), np.float32) ** 2, 0).astype(np.float32),
        patch_box=place.box,
        patch_position=np.arange(BEFORE, BEFORE + place.count, dtype=np.int32),
        patch_image=place.column("image"),
        patch_frame=np.zeros(place.count, np.int32),
        patch_level=place.column("level"),
        image=np.concatenate(files),
        image_end=np.cumsum([len(file) for file in files], dtype=np.int32) if len(files) > 1 else None,
    )


def selections(rng, decides, fire, prefix):
    """Distinct selections u16 [U, H, S], and the row of each layer-step: a refresh exchanges some entries."""
    rows, row = [], np.full(fire.shape, -1, np.int32)
    for step in range(N):
        for layer in np.flatnonzero(decides):
            if step == 0:
                rows.append([rng.choice(prefix, S, replace=False) for _ in range(H)])
            elif fire[step, layer]:
                rows.append([exchanged(rng, kept, prefix) for kept in rows[row[step - 1, layer]]])
            else:
                row[step, layer] = row[step - 1, layer]
                continue
            row[step, layer] = len(rows) - 1
    return np.asarray(rows, np.uint16).reshape(-1, H, S), row


def exchanged(rng, kept, prefix):
    count = rng.integers(0, S)
    fresh = rng.choice(np.setdiff1d(np.arange(prefix), kept), count, replace=False)
    return rng.permutation(np.append(fresh, rng.choice(kept, S - count, replace=False)))


def maps(rng, layers, patches):
    """Maps of every kind, u8, and their scales; the largest value of a map is 255, as a recorder makes it."""
    found = {}
    leads = {"map_mean": (N,), "map_layer": (N, layers), "missed_layer": (N, layers)}
    leads |= {"map_full": (N, layers), "map_head": (N, layers, H)}
    for name, lead in leads.items():
        values = (256 * rng.random((*lead, patches)) ** 4).astype(np.uint8)
        values.reshape(-1, patches)[np.arange(np.prod(lead)), rng.integers(0, patches, np.prod(lead))] = 255
        found |= {name: values, f"{name}_scale": (0.01 + 0.2 * rng.random(lead)).astype(np.float32)}
    return found


def metadata(place, policy, managed, rng):
    text = [WORDS[index] for index in rng.integers(0, len(WORDS), N)]
    length = BEFORE + place.count + WINDOW - IN_WINDOW
    return TraceMeta(
        model="made",
        family="made by rule",
        processor="none",
        prompt="Describe.",
        prompt_pieces=pieces(place),
        policy=policy,
        settings={**Settings(select=S, skip_layers=1).to_dict(), "max_new_tokens": N},
        image_size=place.sizes,
        prompt_length=length,
        prefix_length=length - WINDOW,
        window=WINDOW,
        layers=len(managed),
        kv_heads=H,
        query_groups=2,
        head_dim=16,
        select=S,
        managed=managed.tolist(),
        token_text=text,
        top_text=[[f"word {step} {rank}" for rank in range(5)] for step in range(N)],
        stop_reason="length",
        dtype="float32",
        device="cpu",
    )


def pieces(place: Shape) -> list[PromptPiece]:
    """One piece a text token, but for one of two tokens; one an image."""
    runs = [(f" w{at}", 1, "text") for at in range(BEFORE - 2)] + [("é", 2, "text")]
    runs += [("<image>", int(count), "image") for count in np.bincount(place.column("image"))]
    runs += [(word, 1, "text") for word in ("Describe", " this", ".", "\n", " ")][: WINDOW - IN_WINDOW]
    starts = np.cumsum([0, *(count for _, count, _ in runs)])
    return [
        PromptPiece(text, int(start), count, kind)
        for start, (text, count, kind) in zip(starts, runs, strict=False)
    ]


def picture(height: int, width: int) -> np.ndarray:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (GREY, GREY, GREY)).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)
