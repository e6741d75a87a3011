"""Statistics of a study: paired bootstrap intervals, terciles, rank correlation.

Images are the unit: a resample draws images, and every policy is looked at on the same ones (paired).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95
_AT_ONCE = 1 << 21  # elements that are drawn or multiplied together


@dataclass(frozen=True)
class Interval:
    """A mean with the ends of its interval. With fewer than two values there is no interval: NaN."""

    mean: float
    low: float
    high: float
    count: int


class Bootstrap:
    """Seeded resamples of `count` images, the same for every quantity that is looked at."""

    def __init__(self, count: int, resamples: int = RESAMPLES, seed: int = 0):
        self.count = count
        self.resamples = resamples
        self.seed = seed

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean of each resample: values [n] or [n, A] -> [R] or [R, A]."""
        values = np.asarray(values, np.float64)
        if len(values) != self.count:
            raise ValueError(f"expected {self.count} values, got {len(values)}")
        if not self.count:
            raise ValueError("there is nothing to draw from")
        times = _times_drawn(self.count, self.resamples, self.seed)
        out = np.empty((self.resamples, *values.shape[1:]))
        rows = max(1, _AT_ONCE // self.count)
        for first in range(0, self.resamples, rows):
            out[first : first + rows] = times[first : first + rows].astype(np.float64) @ values
        return out / self.count

    def interval(self, values: np.ndarray, level: float = LEVEL) -> Interval:
        """Percentile interval of the mean of values [n]."""
        values = np.asarray(values, np.float64)
        mean = float(values.mean()) if len(values) else np.nan
        if len(values) < 2:
            return Interval(mean, np.nan, np.nan, len(values))
        tail = (1.0 - level) / 2
        low, high = np.quantile(self.means(values), (tail, 1 - tail))
        return Interval(mean, float(low), float(high), len(values))


@lru_cache(maxsize=4)
def _times_drawn(count: int, resamples: int, seed: int) -> np.ndarray:
    """How often each resample holds each image: [R, n]. Once on average, so that a byte will do."""
    rng = np.random.default_rng(seed)
    out = np.empty((resamples, count), np.uint8)
    rows = max(1, _AT_ONCE // count)
    for first in range(0, resamples, rows):
        size = min(rows, resamples - first)
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        out[first : first + size] = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
    out.flags.writeable = False
    return out


def interval(values, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Percentile bootstrap interval of the mean of values [n]."""
    return _interval(np.asarray(values, np.float64).tobytes(), seed, resamples)


@lru_cache(maxsize=4096)
def _interval(values: bytes, seed: int, resamples: int) -> Interval:
    """Several tables, and a page that asks again, show the same intervals."""
    found = np.frombuffer(values, np.float64)
    return Bootstrap(len(found), resamples, seed).interval(found)


def difference(values, others, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Interval of the mean of `values - others`, image by image (paired)."""
    return interval(np.asarray(values, np.float64) - np.asarray(others, np.float64), seed, resamples)


def terciles(values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices of the lowest, middle and highest third by value, as even as can be; ties by position."""
    order = np.argsort(np.asarray(values, np.float64), kind="stable")
    low, middle, high = np.array_split(order, 3)
    return low, middle, high


def ranks(values) -> np.ndarray:
    """Ranks from 1; equal values share the mean of their ranks."""
    values = np.asarray(values, np.float64)
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return (last - (sizes - 1) / 2)[group]


def spearman(values, others) -> float:
    """Spearman's rank correlation; NaN with fewer than two pairs, or where one side is constant."""
    x, y = ranks(values), ranks(others)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
