"""Loop-by-loop references in float64, written from the formulas; nothing of the package is imported.

Arrays are NumPy, shapes use the package's legend. A `Case` holds numbers that float32 represents exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Case:
    """One layer's prompt and the tokens that follow it.

    queries (H, G, T, D), keys and values (H, T, D); next_queries (N, H, G, D), next_keys and next_values
    (N, H, D).
    """

    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    next_queries: np.ndarray
    next_keys: np.ndarray
    next_values: np.ndarray

    @classmethod
    def random(cls, seed=0, heads=2, groups=2, length=40, depth=8, steps=6, sharp=1.5) -> Case:
        draw = np.random.default_rng(seed)

        def normal(*shape, gain=1.0):
            return (gain * draw.standard_normal(shape)).astype(np.float32).astype(np.float64)

        offset = normal(heads, 1, depth)  # keys have a mean, so centring matters
        return cls(
            normal(heads, groups, length, depth, gain=sharp),
            np.float32(normal(heads, length, depth) + offset).astype(np.float64),
            normal(heads, length, depth),
            normal(steps, heads, groups, depth, gain=sharp),
            np.float32(normal(steps, heads, depth) + offset[:, 0]).astype(np.float64),
            normal(steps, heads, depth),
        )

    @property
    def scale(self) -> float:
        return self.keys.shape[-1] ** -0.5

    def query(self) -> torch.Tensor:
        """The prompt's queries as a model hands them over: float32 [1, H*G, T, D]."""
        return _tensor(self.queries).flatten(0, 1)[None]

    def fill(self, store) -> torch.Tensor:
        """Put the prompt's keys and values into a store; returns its queries."""
        store.update(_tensor(self.keys)[None], _tensor(self.values)[None])
        return self.query()

    def feed(self, store, at: int) -> torch.Tensor:
        """Append token `at` to a store; returns its query [1, H*G, 1, D]."""
        store.update(_tensor(self.next_keys[at])[None, :, None], _tensor(self.next_values[at])[None, :, None])
        return _tensor(self.next_queries[at]).flatten(0, 1)[None, :, None]

    def tail(self, at: int, window: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys and values of the window and of the tokens up to `at`: (H, W + at + 1, D) each."""
        later = [np.moveaxis(x[: at + 1], 0, 1) for x in (self.next_keys, self.next_values)]
        return (
            np.concatenate((self.keys[:, -window:], later[0]), axis=1),
            np.concatenate((self.values[:, -window:], later[1]), axis=1),
        )


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array).float()


def softmax(row) -> np.ndarray:
    row = np.asarray(row, dtype=np.float64)
    weights = np.exp(row - row.max())
    return weights / weights.sum()


def top(scores, count: int) -> list[int]:
    """Indices of the largest scores, in ascending order of index; ties go to the lower index."""
    return sorted(sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count])


def merged(rows, how: str) -> np.ndarray:
    """Rows of the query heads of a KV head -> one row."""
    return np.max(rows, axis=0) if how == "max" else np.mean(rows, axis=0)


def window_rows(case: Case, window: int) -> np.ndarray:
    """Causal attention of the last W prompt queries: (H, G, W, T), zero where a token lies ahead."""
    heads, groups, length, _ = case.queries.shape
    result = np.zeros((heads, groups, window, length))
    for h in range(heads):
        for g in range(groups):
            for w in range(window):
                at = length - window + w
                logits = case.scale * (case.keys[h, : at + 1] @ case.queries[h, g, at])
                result[h, g, w, : at + 1] = softmax(logits)
    return result


def smooth(row: np.ndarray) -> np.ndarray:
    """Average over five neighbours; zeros beyond the ends count."""
    padded = np.concatenate((np.zeros(2), row, np.zeros(2)))
    return np.array([padded[i : i + 5].sum() / 5 for i in range(len(row))])


def prompt_scores(case: Case, window: int, how: str = "mean") -> tuple[np.ndarray, np.ndarray]:
    """B (mean over the window's queries) and E = max(Q - B, 0), Q being the last query's: (H, Np) each."""
    rows = window_rows(case, window)[..., :-window]
    base = np.array([smooth(merged(row.mean(1), how)) for row in rows])
    last = np.array([smooth(merged(row[:, -1], how)) for row in rows])
    return base, np.maximum(last - base, 0.0)


def bacon(base, evidence, before, select: int, profile: str) -> np.ndarray:
    """S = B + lambda * (E + L + T) of each head; `before` holds the evidence of all earlier layers."""
    layers = zip(base, evidence, *before[-4:], strict=True)
    return np.array([_bacon_row(own, new, old, select, profile) for own, new, *old in layers])


def _bacon_row(base, evidence, before, select: int, profile: str) -> np.ndarray:
    length, radius = len(base), 5 if profile == "paper" else 2
    value = np.zeros(length)
    for i in range(length):
        near = evidence[max(0, i - radius) : i + radius + 1]
        value[i] = evidence[i] + sum(near) / (len(near) if profile == "paper" else 2 * radius + 1)
        if before:
            value[i] += sum(layer[i] for layer in before) / len(before)
    count = min(2 * select, length)
    of_base = base[top(base, count)]
    of_value = value[top(value if profile == "release" else base, count)]
    strength = 0.5 * np.std(of_base) / (np.std(of_value) + 1e-8)
    if profile == "release":
        strength *= min(max(of_value.mean() / (of_base.mean() + 1e-8), 0.0), 1.0)
    return base + strength * value


def sketch_logits(keys: np.ndarray, query: np.ndarray, rank: int, centre: bool = False) -> np.ndarray:
    """q.k of every key (Np, D), with the keys reduced to their top right singular vectors."""
    mean = keys.mean(0) if centre else np.zeros(keys.shape[1])
    basis = np.linalg.svd(keys - mean)[2][:rank]  # (R, D)
    return np.array([query @ mean + (basis @ query) @ (basis @ (key - mean)) for key in keys])


def page_corners(keys: np.ndarray, size: int, kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Upper and lower corner of every page of keys (Np, D): bounds, or centre and mean distance from it."""
    corners = []
    for start in range(0, len(keys), size):
        page = keys[start : start + size]
        upper, lower = page.max(0), page.min(0)
        if kind == "cuboid_mean":
            centre = (upper + lower) / 2
            width = sum(np.abs(key - centre) for key in page) / len(page)
            upper, lower = centre + width, centre - width
        corners.append((upper, lower))
    return corners


def page_score(query, upper, lower) -> float:
    return sum(max(q * u, q * w) for q, u, w in zip(query, upper, lower, strict=True))


def page_tokens(scores, size: int, prefix: int, count: int) -> list[int]:
    """The first `count` tokens of the pages, best page first, in ascending order."""
    tokens = []
    for page in sorted(range(len(scores)), key=lambda page: (-scores[page], page)):
        tokens += range(page * size, min((page + 1) * size, prefix))
    return sorted(tokens[:count])


def exact_selection(case: Case, at: int, window: int, select: int, how: str = "mean") -> list[list[int]]:
    """Top S of the true attention of token `at` over prefix, window and generated tokens, per KV head."""
    tail, result = case.tail(at, window)[0], []
    for h, prompt in enumerate(case.keys):
        everything = np.concatenate((prompt[:-window], tail[h]))
        rows = [softmax(case.scale * (everything @ query)) for query in case.next_queries[at, h]]
        result.append(top(merged(rows, how)[: len(prompt) - window], select))
    return result


class RcrLayer:
    """One layer of the drift policy by its step equations; `selected` is its state."""

    def __init__(self, case, selected, window, *, rank, candidates, gqa="mean", centre=False, defer=False):
        self.case, self.window, self.prefix = case, window, case.keys.shape[1] - window
        self.selected, self.pending = [list(row) for row in selected], None
        self.rank, self.candidates, self.gqa, self.centre, self.defer = rank, candidates, gqa, centre, defer

    def step(self, at: int, tau: float, verdict: bool | None = None, bias=0.0):
        """Decide and attend with token `at`: returns drift, fire, output (H, G, D)."""
        if self.pending is not None:
            self.selected, self.pending = self.pending, None
        heads = range(len(self.case.keys))
        hybrid = [self._hybrid(h, at) for h in heads]
        drift = float(np.mean([self._evicted(h, row) for h in heads for row in hybrid[h]]))
        fire = drift > tau if verdict is None else verdict
        if fire:
            chosen = [self._reselect(h, at, hybrid[h], bias) for h in heads]
            self.selected, self.pending = (self.selected, chosen) if self.defer else (chosen, None)
        return drift, fire, np.array([self._attend(h, at) for h in heads])

    def _exact(self, h: int, at: int, query) -> tuple[np.ndarray, np.ndarray]:
        tail = self.case.tail(at, self.window)[0][h]
        return self.case.scale * (self.case.keys[h, : self.prefix] @ query), self.case.scale * (tail @ query)

    def _hybrid(self, h: int, at: int) -> list[np.ndarray]:
        rows = []
        for query in self.case.next_queries[at, h]:
            exact, tail = self._exact(h, at, query)
            prefix = self.case.keys[h, : self.prefix]
            estimate = self.case.scale * sketch_logits(prefix, query, self.rank, self.centre)
            for i in self.selected[h]:
                estimate[i] = exact[i]
            rows.append(np.concatenate((estimate, tail)))
        return rows

    def _evicted(self, h: int, row: np.ndarray) -> float:
        off = [i for i in range(self.prefix) if i not in self.selected[h]]
        on = [*self.selected[h], *range(self.prefix, len(row))]
        return 1 / (1 + np.exp(np.logaddexp.reduce(row[on]) - np.logaddexp.reduce(row[off])))

    def candidates_of(self, h: int, at: int, bias=0.0) -> list[int]:
        """Top C of the prefix by the hybrid estimate."""
        likely = merged([softmax(row) for row in self._hybrid(h, at)], self.gqa)
        return top(likely[: self.prefix] + bias, self.candidates)

    def _reselect(self, h: int, at: int, rows: list[np.ndarray], bias) -> list[int]:
        candidates, refined = self.candidates_of(h, at, bias), []
        for query, row in zip(self.case.next_queries[at, h], rows, strict=True):
            row = row.copy()
            row[candidates] = self._exact(h, at, query)[0][candidates]
            refined.append(softmax(row))
        score = (merged(refined, self.gqa)[: self.prefix] + bias)[candidates]
        return [candidates[i] for i in top(score, len(self.selected[h]))]

    def _attend(self, h: int, at: int) -> list[np.ndarray]:
        kept, rows = self.selected[h], []
        values = np.concatenate((self.case.values[h, kept], self.case.tail(at, self.window)[1][h]))
        for query in self.case.next_queries[at, h]:
            exact, tail = self._exact(h, at, query)
            rows.append(softmax(np.concatenate((exact[kept], tail))) @ values)
        return rows
