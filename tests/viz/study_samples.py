"""Rows of a made study: ten policies on 40 images, with every sweep; values as a study could give them."""

from __future__ import annotations

import math
import random
from dataclasses import asdict, replace

from rcr_core.findings import Row
from rcr_core.settings import Settings

LAYERS = 6
PREFIX = 424
TAU0 = (0.02, 0.03, 0.05, 0.08, 0.11, 0.15, 0.3, 0.5, 0.6, 0.7)
BUDGETS = (8, 16, 32, 64)
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
RANKS = (4, 8, 16, 32)
_WORDS = "a large red cube left of the small green cone under one blue ball near two rings"
WORDS = tuple(_WORDS.split())
# mean fidelity, refresh rate
LEVELS = {
    "full": (1.0, None),
    "bacon": (0.42, 0.0),
    "snapkv": (0.47, 0.0),
    "oracle": (0.58, 0.0),
    "exact": (0.93, 1.0),
    "threshold": (0.68, 0.75),
    "rcr": (0.74, 0.42),
    "quest": (0.71, 1.0),
    "arkvale": (0.41, 1.0),
    "infinigen": (0.88, 1.0),
}
DIAGNOSED = ("full", "rcr")


def made_rows(images: int = 40, sweeps: bool = True, data: str = "scenes:40", **changes) -> list[Row]:
    """The rows of a study: policies at the defaults, then (with `sweeps`) all that is swept."""
    base = Settings()
    variants = [(policy, replace(base, diagnostics=policy in DIAGNOSED)) for policy in LEVELS]
    if sweeps:
        variants += swept(base)
    rows = [made_row(policy, settings, at, data) for policy, settings in variants for at in range(images)]
    found = {row.key: row for row in rows}
    return [replace(row, **changes) for row in found.values()]


def swept(base: Settings) -> list[tuple[str, Settings]]:
    """Policies at the settings of every sweep."""
    dynamic = [policy for policy in LEVELS if policy != "full"]
    return [
        *(("threshold", replace(base, tau0=tau0)) for tau0 in TAU0),
        *((policy, replace(base, select=select)) for select in BUDGETS for policy in dynamic),
        *(("rcr", replace(base, rho=rho, diagnostics=rho == base.rho)) for rho in RATES),
        *(("rcr", replace(base, update=update)) for update in ("layer", "step")),
        *(("rcr", replace(base, rank=rank, diagnostics=True)) for rank in RANKS),
        *(("rcr", replace(base, select=select, rho=rho)) for select in BUDGETS for rho in RATES[1::2]),
    ]


def made_row(policy: str, settings: Settings, image: int, data: str = "scenes:40", **changes) -> Row:
    """One row, the same whenever it is made; what an image is like is the same under every policy."""
    deciding = sorted((name, value) for name, value in asdict(settings).items() if name != "offload")
    dice = random.Random(f"{policy} {deciding} {image}")
    nature = random.Random(image)
    drift = min(max(nature.gauss(0.3, 0.14), 0.02), 0.9)
    rate = rate_of(policy, settings, drift)
    fidelity = fidelity_of(policy, settings, rate, drift, dice)
    reference = [nature.choice(WORDS) for _ in range(nature.randint(24, 60))]
    agreed = len(reference) if fidelity == 1.0 else int(len(reference) * fidelity * 0.6)
    text = reference[:agreed] + [dice.choice(WORDS) for _ in range(len(reference) - agreed)]
    triggered = policy in ("rcr", "threshold")
    diagnosed = settings.diagnostics and triggered
    tau_end = min(settings.tau0 * math.exp(0.05 * (rate - settings.rho) * 600), 1.0) if triggered else None
    row = Row(
        data=data,
        sample=f"scene-{image:03d}",
        prompt="Describe this image in detail.",
        model="bundled-captioner",
        dtype="float32",
        weights="c0ffee",
        device="cpu",
        policy=policy,
        settings=settings.to_dict(),
        max_new_tokens=320,
        text=" ".join(text) + ".",
        tokens=[WORDS.index(word) for word in text] + [99],
        stop_reason="eos",
        shape={
            "layers": LAYERS,
            "kv_heads": 2,
            "query_groups": 2,
            "head_dim": 32,
            "prefix_length": PREFIX,
            "prompt_length": PREFIX + settings.window,
        },
        seconds=1.5 + dice.random(),
        versions={"rcr": "1", "torch": "2.13.0", "transformers": "5.24.0"},
        refresh_rate=rate,
        refresh_by_layer=by_layer(rate),
        mean_drift=drift if policy != "full" else None,
        tau_end=tau_end if policy == "rcr" else None,
        settles_at=dice.randint(4, 30) if policy == "rcr" else None,
        identity_rate=rate + dice.gauss(0, 1e-4) if policy == "rcr" else None,
        staleness=[0.35 + 0.08 * layer + dice.gauss(0, 0.03) for layer in range(LAYERS)]
        if policy == "full"
        else None,
        recall=min(1.0, 0.62 + 0.09 * math.log2(settings.rank) + dice.gauss(0, 0.02)) if diagnosed else None,
        drift_exact=drift + 0.08 / math.log2(settings.rank) + dice.gauss(0, 0.004) if diagnosed else None,
        exchanged=12 * rate if rate else None,
        objects=10,
        objects_right=round(10 * fidelity**3),
        fidelity=None if policy == "full" else fidelity,
        diverges_at=None if policy == "full" else (agreed if agreed < len(reference) else -1),
        scene={"seed": 9000 + image},
    )
    return replace(row, **changes)


def rate_of(policy: str, settings: Settings, drift: float) -> float | None:
    """The refresh rate of a run on an image of this mean drift."""
    if policy == "rcr":
        spread = 0.02 if settings.update == "layer" else 0.12
        return min(max(settings.rho + spread * (1 + drift), 0.0), 1.0)
    if policy == "threshold":
        return 1 / (1 + math.exp(-3 * math.log(drift / (4 * settings.tau0))))
    return LEVELS[policy][1]


def by_layer(rate: float | None) -> list[float | None] | None:
    """Early layers refresh less; the first decides nothing where there is no rate."""
    if rate is None:
        return [None] * LAYERS
    return [min(rate * (0.5 + 0.2 * layer), 1.0) for layer in range(LAYERS)]


def fidelity_of(policy: str, settings: Settings, rate, drift: float, dice: random.Random) -> float:
    """ROUGE-L F1 against the uncompressed run."""
    if policy == "full":
        return 1.0
    level = LEVELS[policy][0]
    if policy in ("rcr", "threshold"):
        level = 0.42 + 0.5 * (1 - math.exp(-2.6 * rate))
    budget = 0.12 * math.log2(settings.select / 32) * (1 - level) * 2
    return min(max(level + budget - 0.25 * (drift - 0.3) + dice.gauss(0, 0.06), 0.05), 1.0)
