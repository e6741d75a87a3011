"""The one copy of a step from the device to the host."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def to_host(parts: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """All tensors of a step in one copy: joined by dtype, then as bytes."""
    groups: dict[torch.dtype, list[str]] = {}
    for name, part in parts.items():
        groups.setdefault(part.dtype, []).append(name)
    joined = [torch.cat([parts[name].reshape(-1) for name in names]) for names in groups.values()]
    data = torch.cat([flat.view(torch.uint8) for flat in joined]).cpu().numpy()
    out, at = {}, 0
    for dtype, names in groups.items():
        kind = np.dtype(str(dtype).removeprefix("torch."))
        for name in names:
            end = at + parts[name].nbytes
            out[name] = data[at:end].view(kind).reshape(parts[name].shape)
            at = end
    return out
