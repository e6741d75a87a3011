"""Optimizers of the training: Muon for the matrices, AdamW for embeddings, norms, biases and heads."""

from __future__ import annotations

import torch
from torch import nn

MUON_SHARE = 2.5  # Muon's learning rate over AdamW's
VISION_SHARE = 0.15  # of the learning rate, for the vision tower while captions are learned


def build_optimizers(model: nn.Module, heads: nn.Module, captions: bool) -> dict[str, torch.optim.Optimizer]:
    """Optimizers of a phase: vision tower and heads, or the whole model where `captions` are learned.

    Every parameter group carries its `scale`, the share of the learning rate that it gets.
    """
    vision = [(name, one, VISION_SHARE if captions else 1.0) for name, one in _vision(model, True)]
    others = _vision(model, False) if captions else [(f"heads.{n}", p) for n, p in heads.named_parameters()]
    groups: dict[str, dict[float, list]] = {"muon": {}, "adamw": {}}
    for name, parameter, scale in [*vision, *((name, one, 1.0) for name, one in others)]:
        kind = "muon" if _is_hidden_matrix(name, parameter) else "adamw"
        scale *= MUON_SHARE if kind == "muon" else 1.0
        groups[kind].setdefault(scale, []).append(parameter)
    listed = {
        kind: [{"params": parameters, "scale": scale} for scale, parameters in by_scale.items()]
        for kind, by_scale in groups.items()
    }
    return {
        "muon": torch.optim.Muon(listed["muon"], weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        "adamw": torch.optim.AdamW(listed["adamw"], betas=(0.9, 0.98), weight_decay=0.0),
    }


def set_rate(optimizers: dict[str, torch.optim.Optimizer], rate: float) -> None:
    """Set the learning rate, each group its share."""
    for optimizer in optimizers.values():
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]


def schedule(step: int, steps: int, warmup: int = 100, fall: float = 0.55) -> float:
    """Share of the full learning rate: linear warm-up, flat, linear fall at the end."""
    return min(1.0, (step + 1) / warmup, (steps - step) / max(1.0, fall * steps))


def _vision(model: nn.Module, inside: bool) -> list[tuple[str, nn.Parameter]]:
    return [(name, one) for name, one in model.named_parameters() if (".visual." in name) == inside]


def _is_hidden_matrix(name: str, parameter: nn.Parameter) -> bool:
    outer = ("embed", "lm_head", "heads.")
    return parameter.ndim == 2 and not any(part in name for part in outer)
