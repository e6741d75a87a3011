"""The rows of one model on one data set, found by policy and setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from rcr_core.findings.kinds import place_of
from rcr_core.findings.row import Row
from rcr_core.settings import Settings

ENOUGH = 10  # images, for a mean over them to say something
_MAIN = ("select", "window", "tau0", "rho")
# Settings that change what is recorded, or where the prefix lies, never what is decoded.
_RECORDING = ("diagnostics", "offload")

Which = TypeVar("Which", bound=Hashable)


@dataclass(frozen=True)
class Evidence:
    """Rows of one model on one data set.

    weights: their fingerprint. base: the settings of the main comparison, without those that never
    change what is decoded.
    """

    model: str
    dtype: str
    weights: str
    data: str
    rows: tuple[Row, ...] = field(repr=False)
    base: dict[str, Any]

    def of(self, policy: str, **changes: Any) -> dict[str, Row]:
        """The rows of a policy at the base settings but for `changes`, by sample.

        Where an image was run with and without diagnostics the row with them is taken: it says more. Where a
        sample was run with several prompts, each of them counts as a sample.
        """
        return dict(self._found.get((policy, _frozen({**self.base, **changes})), {}))

    def varied(self, policy: str, *names: str) -> dict[tuple[Any, ...], dict[str, Row]]:
        """The rows of a policy by the values of settings `names`, the others as in the base; ascending."""
        fixed = [name for name in self.base if name not in names]
        found = {}
        for settings, rows in self.settings_of(policy):
            if settings.keys() == self.base.keys() and all(
                settings[name] == self.base[name] for name in fixed
            ):
                found[tuple(settings[name] for name in names)] = dict(rows)
        return dict(sorted(found.items()))

    def settings_of(self, policy: str) -> list[tuple[dict[str, Any], dict[str, Row]]]:
        """Every setting that a policy was run at, with its rows by sample."""
        return [(dict(settings), rows) for (name, settings), rows in self._found.items() if name == policy]

    @property
    def policies(self) -> list[str]:
        """Policies that were run at the base settings: one-shot, exact, triggered, paged, and then others."""
        base = _frozen(self.base)
        return [policy for policy in self.all_policies if (policy, base) in self._found]

    @property
    def all_policies(self) -> list[str]:
        """Policies that were run at any settings, in the same order."""
        names = dict.fromkeys(row.policy for row in self.rows)
        return sorted(names, key=place_of)

    def main(self) -> dict[str, dict[str, Row]]:
        """The rows of every policy at the base settings, on common images so that their means compare.

        Where fewer than 10 images are common, and some policy has others, each stands on its own images.
        """
        found = {policy: self.of(policy) for policy in self.policies}
        common = in_common(*found.values()) if found else []
        if len(common) < ENOUGH and uneven(found):
            return found
        return {policy: {sample: rows[sample] for sample in common} for policy, rows in found.items()}

    @property
    def base_text(self) -> str:
        """The base settings for people: budget, threshold and rate, and what else is not a default."""
        default = compared(Settings().to_dict())
        told = [name for name in _MAIN if name in self.base]
        told += [
            name
            for name, value in self.base.items()
            if name not in _MAIN and value != default.get(name, value)
        ]
        return ", ".join(f"{name} {self.base[name]}" for name in told)

    @cached_property
    def _found(self) -> dict[tuple[str, tuple], dict[str, Row]]:
        """Rows by policy and settings, and by sample."""
        prompts: dict[str, set[str]] = {}
        for row in self.rows:
            prompts.setdefault(row.sample, set()).add(row.prompt)
        found: dict[tuple[str, tuple], dict[str, Row]] = {}
        for row in self.rows:
            rows = found.setdefault((row.policy, _frozen(compared(row.settings))), {})
            sample = row.sample if len(prompts[row.sample]) == 1 else f"{row.sample}: {row.prompt}"
            if sample not in rows or row.settings.get("diagnostics"):
                rows[sample] = row
        return found


def evidence_of(rows: Iterable[Row]) -> list[Evidence]:
    """Rows by model and data set, each with its main comparison: the settings under which most was run.

    Runs that may generate differently many tokens stand apart, as data sets do.
    """
    groups: dict[tuple[str, str, str, str, int], list[Row]] = {}
    for row in rows:
        which = (row.model, row.dtype, row.weights, row.data, row.max_new_tokens)
        groups.setdefault(which, []).append(row)
    return [Evidence(*which[:4], tuple(group), _base(group)) for which, group in groups.items()]


def compared(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without those that only change what is recorded."""
    return {name: value for name, value in settings.items() if name not in _RECORDING}


def in_common(*columns: Mapping[str, Row]) -> list[str]:
    """The samples that all columns have, in the order of the first: what can be compared in pairs."""
    return [sample for sample in columns[0] if all(sample in column for column in columns[1:])]


def uneven(columns: Mapping[Which, Mapping[str, Row]]) -> bool:
    """Whether columns are of different images, so that their means do not compare."""
    return len({frozenset(rows) for rows in columns.values()}) > 1


def on_common(columns: Mapping[Which, Mapping[str, Row]]) -> dict[Which, dict[str, Row]]:
    """Columns on the images that they have in common, so that they can be compared.

    Where few images are in all of them, columns that lack the images of the others are left out: kept is
    the set with the most columns (squared) times images, where 10 images are as good as more.
    """
    holders: dict[str, set[Which]] = {}
    for which, rows in columns.items():
        for sample in rows:
            holders.setdefault(sample, set()).add(which)
    kinds = Counter(frozenset(held) for held in holders.values())

    def worth(kept: frozenset) -> tuple[int, int]:
        images = sum(count for kind, count in kinds.items() if kept <= kind)
        return len(kept) ** 2 * min(images, ENOUGH), images

    best = max(kinds, key=worth, default=frozenset())
    return {
        which: {sample: row for sample, row in rows.items() if best <= holders[sample]}
        for which, rows in columns.items()
        if which in best
    }


def _frozen(settings: dict[str, Any]) -> tuple:
    return tuple(sorted(settings.items()))


def _base(rows: list[Row]) -> dict[str, Any]:
    """The settings with the most policies, and of those with the most rows."""
    count: Counter[tuple] = Counter()
    policies: dict[tuple, set[str]] = {}
    for row in rows:
        settings = _frozen(compared(row.settings))
        count[settings] += 1
        policies.setdefault(settings, set()).add(row.policy)
    best = max(count, key=lambda settings: (len(policies[settings]), count[settings]))
    return dict(best)
