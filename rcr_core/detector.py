"""The detector: a low-rank sketch of a prefix that estimates the logits of evicted entries.

The top R right singular vectors of each KV head's prefix key matrix span the space in which logits are
estimated (paper, "Detector"). They are the leading eigenvectors of the D x D Gram matrix, far cheaper than an
SVD of Np x D.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def singular_vectors(rows: Tensor) -> Tensor:
    """Right singular vectors of float32 rows [H, X, D] -> orthogonal [H, D, D], weakest first."""
    gram = rows.transpose(1, 2) @ rows
    if gram.device.type == "mps":  # torch has no kernel for it there
        return torch.linalg.eigh(gram.cpu()).eigenvectors.to(gram.device)
    return torch.linalg.eigh(gram).eigenvectors


@dataclass(frozen=True)
class Sketch:
    """Sketch of one layer's prefix keys.

    basis float32 [H, D, R] with orthonormal columns; keys [H, R, Np] in the dtype of the prefix, the keys in
    that basis; mean [H, D, 1] float32 or None (no centring).
    """

    basis: Tensor
    keys: Tensor
    mean: Tensor | None = None

    @classmethod
    def of(cls, prefix: Tensor, rank: int, centre: bool = False) -> Sketch:
        """Sketch of prefix keys [H, Np, D]; the rank is clamped to min(rank, Np, D)."""
        rank = min(rank, *prefix.shape[1:])
        keys = prefix.float()
        mean = keys.mean(1, keepdim=True) if centre else None
        keys = keys - mean if centre else keys
        basis = singular_vectors(keys)[..., -rank:].contiguous()
        reduced = (keys @ basis).transpose(1, 2).contiguous().to(prefix.dtype)
        return cls(basis, reduced, mean.transpose(1, 2).contiguous() if centre else None)

    def logits(self, query: Tensor) -> Tensor:
        """Estimated logits of every prefix entry: scaled query [H, G, D] -> float32 [H, G, Np]."""
        estimate = torch.bmm(torch.bmm(query, self.basis), self.keys.float())
        return estimate if self.mean is None else estimate + torch.bmm(query, self.mean)

    @property
    def resident_bytes(self) -> int:
        tensors = (self.basis, self.keys, *(() if self.mean is None else (self.mean,)))
        return sum(tensor.nbytes for tensor in tensors)
