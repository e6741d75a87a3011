"""Training state in one safetensors file, replaced by rename: weights, optimizer moments, counters."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn


def save_state(
    path: Path, modules: dict[str, nn.Module], optimizers: dict[str, torch.optim.Optimizer], counters: dict
):
    """Write everything that a resumed training needs. `counters` must be JSON."""
    tensors = {}
    for name, module in modules.items():
        for key, value in module.state_dict().items():
            tensors[f"{name}/{key}"] = value.detach().clone().contiguous()
    for name, optimizer in optimizers.items():
        for index, state in optimizer.state_dict()["state"].items():
            for key, value in state.items():
                tensors[f"{name}/{index}/{key}"] = torch.as_tensor(value).detach().clone().contiguous()
    scratch = path.with_suffix(".part")
    save_file(tensors, scratch, metadata={"counters": json.dumps(counters)})
    os.replace(scratch, path)


def load_state(
    path: Path, modules: dict[str, nn.Module], optimizers: dict[str, torch.optim.Optimizer]
) -> dict:
    """Restore what `save_state` wrote; return the counters. Optimizers that the file lacks start afresh."""
    with safe_open(path, framework="pt") as file:
        names = list(file.keys())
        tensors = {name: file.get_tensor(name) for name in names}
        counters = json.loads(file.metadata()["counters"])
    for name, module in modules.items():
        found = _under(tensors, name)
        if found:
            module.load_state_dict(found)
    for name, optimizer in optimizers.items():
        state: dict[int, dict] = {}
        for key, value in _under(tensors, name).items():
            index, field = key.split("/")
            state.setdefault(int(index), {})[field] = value
        if state:
            optimizer.load_state_dict(
                {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
            )
    return counters


def _under(tensors: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    return {key[len(name) + 1 :]: value for key, value in tensors.items() if key.startswith(f"{name}/")}
