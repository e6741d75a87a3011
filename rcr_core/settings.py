"""Settings of a run: budget, controller, detector and the knobs of the other policies.

One flat frozen dataclass, because a run is described by one row of settings in a trace, on the command line
and on the page. Every field carries its range and its meaning in `metadata`; validation, `--help` and the
page read it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from numbers import Integral, Real
from typing import Any

from rcr_core.errors import SettingsError


def _number(default: float, low: float, high: float, text: str):
    return field(default=default, metadata={"low": low, "high": high, "help": text})


def _choice(default: str, options: tuple[str, ...], text: str):
    return field(default=default, metadata={"options": options, "help": text})


def _flag(text: str):
    return field(default=False, metadata={"help": text})


@dataclass(frozen=True)
class Settings:
    """All knobs of all policies; a policy reads the ones that it uses.

    Defaults are the paper's (select 32, window 32, tau0 0.03, rho 0.4, gain 0.05, rank 8, candidates 4c).
    Raises `SettingsError` naming the field and its range.
    """

    select: int = _number(32, 1, 65536, "prefix entries kept per KV head (S)")
    window: int = _number(32, 1, 65536, "last prompt tokens that are always kept (W)")
    tau0: float = _number(
        0.03, 1e-6, 1.0, "threshold at the start of a run; the fixed threshold of `threshold`"
    )
    rho: float = _number(0.4, 0.0, 1.0, "target fraction of layer-steps that refresh")
    gain: float = _number(0.05, 0.0, 10.0, "step size of the controller on log tau")
    update: str = _choice("layer", ("layer", "step"), "when tau moves: after each layer, or once a step")
    rank: int = _number(8, 1, 1024, "rank of the detector's sketch of the prefix keys (R)")
    candidates: int = _number(0, 0, 1 << 20, "tokens scored exactly on a refresh (C); 0 means 4 x select")
    centre: bool = _flag("subtract the mean key before the sketch is computed")
    gqa: str = _choice("mean", ("mean", "max"), "how the query heads of a KV head are merged into one score")
    skip_layers: int = _number(0, 0, 1024, "first layers that keep their whole prefix, under any policy")
    bacon: str = _choice("paper", ("paper", "release"), "profile of the BACON score")
    page: int = _number(16, 1, 4096, "tokens per page of Quest and ArkVale; more than select count as select")
    page_heads: str = _choice("layer", ("layer", "head"), "ArkVale: one page set per layer, or per KV head")
    channels: int = _number(32, 1, 1024, "key channels that InfiniGen scores with")
    defer: bool = _flag("a refresh acts on the next step instead of this one")
    merge: str = _choice(
        "masked", ("masked", "branch"), "refresh by a masked merge (no host sync) or by a branch"
    )
    offload: str = _choice(
        "none",
        ("none", "masked", "conditional"),
        "where the prefix lies: none: on the device; else in host memory, masked: read in every layer, "
        "conditional: read only where a layer refreshes, and only what is not kept",
    )
    diagnostics: bool = _flag(
        "also record what needs the full prefix: exact drift, candidate recall, staleness"
    )

    def __post_init__(self):
        for spec in fields(self):
            _check(spec, getattr(self, spec.name))
        if self.candidates and self.candidates < self.select:
            raise SettingsError(
                f"candidates must be 0 or at least select ({self.select}), got {self.candidates}"
            )

    @property
    def candidate_count(self) -> int:
        """Candidates per KV head on a refresh: `candidates`, or the paper's 4c where it is 0."""
        return self.candidates or 4 * self.select

    @property
    def branches(self) -> bool:
        """Whether a refresh is a branch, taken only where the trigger fired, or else a masked merge."""
        return self.offload == "conditional" or (self.offload == "none" and self.merge == "branch")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        """Settings from a mapping. Raises `SettingsError` on an unknown field."""
        known = {spec.name for spec in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise SettingsError(
                f"unknown setting {unknown[0]!r}", f"known settings: {', '.join(sorted(known))}"
            )
        return cls(**values)


def range_text(low: float, high: float) -> str:
    """A range for people: whole numbers in full, others short."""
    return "[" + ", ".join(str(end) if isinstance(end, int) else f"{end:g}" for end in (low, high)) + "]"


def _check(spec, value: Any) -> None:
    if "options" in spec.metadata:
        if value not in spec.metadata["options"]:
            raise SettingsError(
                f"{spec.name} must be one of {', '.join(spec.metadata['options'])}, got {value!r}"
            )
    elif "low" in spec.metadata:
        low, high = spec.metadata["low"], spec.metadata["high"]
        kind, name = (Integral, "a whole number") if isinstance(spec.default, int) else (Real, "a number")
        if not isinstance(value, kind) or isinstance(value, bool) or not low <= value <= high:
            raise SettingsError(f"{spec.name} must be {name} in {range_text(low, high)}, got {value!r}")
    elif not isinstance(value, bool):
        raise SettingsError(f"{spec.name} must be true or false, got {value!r}")
