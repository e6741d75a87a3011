"""The rate controller: one threshold tau per run, steered so that a fraction rho of layer-steps refresh.

tau <- tau * exp(gain * (f - rho)) with f = 1 where a layer refreshed (paper, "Rate control"). In float64
(float32 where the device has none) and on the device: a decision never waits for the host.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

TAU_LIMITS = (1e-6, 1.0)  # drift is a share, so a threshold outside never decides anything else


class RateController:
    """tau of one run. With gain 0 it is the fixed threshold.

    `update` is "layer" (tau moves after every layer) or "step" (once a step, f = share of layers that
    refreshed). Identity, as long as no limit binds: sum over updates of (f - rho) = ln(tau_end / tau0) /
    gain.
    """

    def __init__(self, tau0: float, rho: float, gain: float, update: str, device: torch.device):
        self.gain = gain
        self.update = update
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.tau = torch.full((), tau0, dtype=dtype, device=device)
        self.set_rho(rho)
        self._fired: list[Tensor] = []

    def set_rho(self, rho: float) -> None:
        """Steer towards another rate from here on."""
        self.rho = rho
        self._up = torch.full_like(self.tau, math.exp(self.gain * (1.0 - rho)))
        self._down = torch.full_like(self.tau, math.exp(-self.gain * rho))

    def set_tau(self, tau: float) -> None:
        """Start again from another threshold."""
        self.tau = torch.full_like(self.tau, tau)

    def exceeded(self, drift: Tensor) -> Tensor:
        """Whether a drift asks for a refresh: scalar bool. Strict, so that no drift never fires."""
        return drift > self.tau.to(drift.device)

    def observe(self, fire: Tensor) -> None:
        """Take note of a layer's decision; with `update="layer"` tau moves now."""
        if self.gain == 0.0:
            return
        if self.update == "step":
            self._fired.append(fire)
            return
        self._scale(torch.where(fire.to(self.tau.device), self._up, self._down))

    def end_step(self) -> None:
        """With `update="step"` tau moves here."""
        if self._fired:
            share = torch.stack([fire.to(self.tau.device) for fire in self._fired]).to(self.tau.dtype).mean()
            self._scale((self.gain * (share - self.rho)).exp())
            self._fired = []

    def _scale(self, by: Tensor) -> None:
        self.tau = (self.tau * by).clamp_(*TAU_LIMITS)
