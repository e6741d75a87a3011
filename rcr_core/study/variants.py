"""What is compared in a study: policies at settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rcr_core.errors import SettingsError
from rcr_core.findings.kinds import REFERENCE
from rcr_core.policies import POLICIES, unknown_policy
from rcr_core.settings import Settings

THRESHOLDS = (0.02, 0.03, 0.05, 0.08, 0.11, 0.15, 0.3, 0.5, 0.6, 0.7)  # the paper's range, and beyond it
BUDGETS = (8, 16, 32, 64)
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
RANKS = (4, 8, 16, 32)
GRID_BUDGETS, GRID_RATES = (32, 48, 64, 96), (0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Variant:
    """A policy at its settings."""

    policy: str
    settings: Settings


def of_policies(names: Iterable[str], base: Settings) -> list[Variant]:
    """One variant a policy, the uncompressed reference first. Raises `SettingsError` on an unknown name."""
    names = list(names)
    for name in names:
        if name not in POLICIES:
            raise unknown_policy(name)
    return [reference(base), *(Variant(name, base) for name in dict.fromkeys(names) if name != REFERENCE)]


def reference(base: Settings) -> Variant:
    """The uncompressed run. It measures staleness too, which is a property of the model's own attention."""
    return Variant(REFERENCE, replace(base, diagnostics=True))


def _thresholds(base: Settings, names: list[str]) -> list[Variant]:
    return [Variant("threshold", replace(base, tau0=tau)) for tau in THRESHOLDS]


def _budgets(base: Settings, names: list[str]) -> list[Variant]:
    others = [name for name in names if name != REFERENCE]
    return [Variant(name, replace(base, select=select)) for select in BUDGETS for name in others]


def _rates(base: Settings, names: list[str]) -> list[Variant]:
    return [Variant("rcr", replace(base, rho=rho)) for rho in RATES]


def _updates(base: Settings, names: list[str]) -> list[Variant]:
    return [Variant("rcr", replace(base, update=update)) for update in ("layer", "step")]


def _ranks(base: Settings, names: list[str]) -> list[Variant]:
    return [Variant("rcr", replace(base, rank=rank, diagnostics=True)) for rank in RANKS]


def _grid(base: Settings, names: list[str]) -> list[Variant]:
    budgets = [replace(base, select=select) for select in GRID_BUDGETS]
    steered = [Variant("rcr", replace(budget, rho=rho)) for budget in budgets for rho in GRID_RATES]
    return [*(Variant("bacon", budget) for budget in budgets), *steered]


SWEEPS: dict[str, Callable[[Settings, list[str]], list[Variant]]] = {
    "thresholds": _thresholds,
    "budgets": _budgets,
    "rates": _rates,
    "updates": _updates,
    "ranks": _ranks,
    "grid": _grid,
}


def sweep(names: Iterable[str], policies: Iterable[str], base: Settings) -> list[Variant]:
    """The variants of sweeps, each once, with the reference. Raises `SettingsError` on an unknown name."""
    found = [reference(base)]
    for name in names:
        if name not in SWEEPS:
            raise SettingsError(f"unknown sweep {name!r}", f"known sweeps: {', '.join(SWEEPS)}")
        found += SWEEPS[name](base, list(policies))
    return list(dict.fromkeys(found))
