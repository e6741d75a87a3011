"""A short name for the weights of a model, by which checkpoints of one folder name are told apart."""

from __future__ import annotations

import hashlib

from torch import nn

_VALUES = 64  # of each end of a parameter
_DIGITS = 12


def fingerprint(model: nn.Module) -> str:
    """Equal for equal weights of one dtype, on any device: twelve hexadecimal digits.

    Names, shapes and the ends of every parameter go in: training changes all of them, and a large model need
    not be read as a whole. Parameters that are not in memory are known by name and shape alone.
    """
    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        digest.update(f"{name} {tuple(parameter.shape)} ".encode())
        if not parameter.is_meta:
            flat = parameter.detach().reshape(-1)
            for end in (flat[:_VALUES], flat[-_VALUES:]):
                digest.update(end.float().cpu().numpy().tobytes())
    return digest.hexdigest()[:_DIGITS]
