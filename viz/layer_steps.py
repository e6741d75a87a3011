"""What figures and tables read from the layer-steps of a trace: which were decisions, what they changed."""

from __future__ import annotations

import numpy as np

from rcr_core.trace import Trace

WINDOW = 16  # steps that a running value looks back over
MASS_KINDS = ("selected visual", "selected text", "window", "generated")


def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, f64 of their shape; NaN where there is no whole."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)


def running_sum(value: np.ndarray) -> np.ndarray:
    """The sum of each step and the `WINDOW` - 1 steps before it: value [N] -> [N]."""
    total = np.cumsum(value)
    before = np.concatenate((np.zeros(WINDOW, total.dtype), total))[: len(total)]
    return total - before


def step_means(value: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """The mean of a value [N, L] over the layers counted at each step: f64 [N], NaN where none is."""
    total = np.where(counted, value, 0).sum(axis=1, dtype=np.float64)
    return share(total, counted.sum(axis=1))


def step_tau(trace: Trace) -> np.ndarray:
    """The threshold of the last decision of each step: f32 [N], NaN where nothing is compared with one."""
    compared = trace.decided & (trace.tau > 0)
    last = compared.shape[1] - 1 - compared[:, ::-1].argmax(axis=1)
    tau = trace.tau[np.arange(trace.steps), last]
    return np.where(compared.any(axis=1), tau, np.float32(np.nan))


def mean_mass(trace: Trace) -> np.ndarray:
    """The attention of a step by kind (MASS_KINDS), mean over the managed layers: f64 [N, 4]."""
    return trace.mass[:, np.array(trace.meta.managed, bool)].mean(axis=1, dtype=np.float64)
