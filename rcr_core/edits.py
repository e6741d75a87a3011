"""Edits: what-if questions to a run, and the gate that every decision of a policy passes.

An edit forces or forbids a refresh, pins or bans a prefix entry, or changes tau or rho, from a step on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from rcr_core.errors import EditError

# kind -> the fields that go with it, beside `step`
_FIELDS = {
    "refresh": ("layer", "until"),
    "hold": ("layer", "until"),
    "pin": ("layer", "index"),
    "ban": ("layer", "index"),
    "tau": ("value",),
    "rho": ("value",),
}
KINDS = tuple(_FIELDS)
_VALUES = {"tau": (1e-6, 1.0), "rho": (0.0, 1.0)}


@dataclass(frozen=True)
class Edit:
    """One edit. Raises `EditError` where it makes no sense.

    kind: `refresh` forces and `hold` forbids a refresh at steps [step, until] (only `step` where until is
        None); `pin` keeps and `ban` evicts prefix entry `index` from `step` on; `tau` and `rho` set `value`
        from `step` on.
    layer: the layer that it acts on, or None for every layer (tau and rho are shared by all layers).
    """

    kind: str
    step: int
    layer: int | None = None
    until: int | None = None
    index: int | None = None
    value: float | None = None

    def __post_init__(self):
        if self.kind not in KINDS:
            raise EditError(f"unknown edit {self.kind!r}", f"known edits: {', '.join(KINDS)}")
        for name in ("layer", "until", "index", "value"):
            if getattr(self, name) is not None and name not in _FIELDS[self.kind]:
                raise EditError(f"{self.kind} takes no {name}", f"it takes {', '.join(_FIELDS[self.kind])}")
        self._check_whole_numbers()
        if self.step < 1:
            raise EditError(f"an edit needs a step of at least 1, got {self.step}", "step 0 is the prefill")
        if self.until is not None and self.until < self.step:
            raise EditError(f"until must be at least step ({self.step}), got {self.until}")
        if "index" in _FIELDS[self.kind] and (self.index is None or self.index < 0):
            raise EditError(f"{self.kind} needs the index of a prefix entry")
        if self.kind in _VALUES:
            low, high = _VALUES[self.kind]
            if (
                not isinstance(self.value, Real)
                or isinstance(self.value, bool)
                or not low <= self.value <= high
            ):
                raise EditError(f"{self.kind} needs a value in [{low:g}, {high:g}]")

    def _check_whole_numbers(self) -> None:
        for name in ("step", "layer", "until", "index"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise EditError(f"{name} must be a whole number, got {value!r}")

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class Gate:
    """Where the edits of one run override the decisions of its policy. With no edits it changes nothing."""

    def __init__(self, edits: tuple[Edit, ...] = ()):
        self.edits = tuple(sorted(edits, key=lambda edit: edit.step))
        self.step = 0
        self._fixed = {edit.index for edit in self.edits if edit.kind in ("pin", "ban")}
        self._bias: dict[int, Tensor | None] = {}

    def check(self, layers: int, prefix: int, select: int) -> None:
        """Raises `EditError` where an edit names a layer or prefix entry that the run does not have."""
        for edit in self.edits:
            if edit.layer is not None and not 0 <= edit.layer < layers:
                raise EditError(f"layer must be in [0, {layers - 1}], got {edit.layer}")
            if edit.index is not None and edit.index >= prefix:
                raise EditError(f"index must be in [0, {prefix - 1}] (the prefix), got {edit.index}")
        for layer in range(layers):
            pinned, banned = (len({e.index for e in self._of(layer, kind)}) for kind in ("pin", "ban"))
            if pinned > select:
                raise EditError(f"at most {select} entries of a layer can be pinned (select)")
            if select < prefix and prefix - banned < select:
                raise EditError(f"too many bans: fewer than {select} prefix entries are left (select)")

    def begin_step(self, step: int) -> None:
        self.step = step
        if any(edit.step == step for edit in self.edits if edit.kind in ("pin", "ban")):
            self._bias.clear()

    def refresh(self, layer: int) -> bool | None:
        """True = forced, False = forbidden, None = the policy decides. Of two edits the later one wins."""
        verdict = None
        for edit in self._of(layer, "refresh", "hold"):
            if edit.step <= self.step <= (edit.step if edit.until is None else edit.until):
                verdict = edit.kind == "refresh"
        return verdict

    def fire(self, layer: int, fire: Tensor) -> Tensor:
        """A policy's decision (scalar bool) after the edits."""
        verdict = self.refresh(layer)
        return fire if verdict is None else torch.full_like(fire, verdict)

    def value(self, kind: str) -> float | None:
        """The `tau` or `rho` that an edit sets at this step, or None."""
        values = [edit.value for edit in self.edits if edit.kind == kind and edit.step == self.step]
        return values[-1] if values else None

    def bias(self, layer: int, prefix: int, device: torch.device) -> Tensor | None:
        """What to add to scores: float32 [Np], +inf pinned, -inf banned; None without such edits.

        Whether a pin or ban is in force depends on the step; of two edits of one entry the later one wins.
        """
        if not self._fixed:
            return None
        if layer not in self._bias:
            active = [edit for edit in self._of(layer, "pin", "ban") if edit.step <= self.step]
            bias = torch.zeros(prefix)
            for edit in active:
                bias[edit.index] = float("inf") if edit.kind == "pin" else float("-inf")
            self._bias[layer] = bias.to(device) if active else None
        return self._bias[layer]

    def moved(self, layer: int) -> bool:
        """Whether a pin or ban of this layer starts at this step."""
        return any(edit.step == self.step for edit in self._of(layer, "pin", "ban"))

    def _of(self, layer: int, *kinds: str) -> list[Edit]:
        return [edit for edit in self.edits if edit.kind in kinds and edit.layer in (None, layer)]


def edits_from_dicts(values: list[dict[str, Any]]) -> tuple[Edit, ...]:
    """Edits from their dictionaries. Raises `EditError` on an unknown field."""
    try:
        return tuple(Edit(**value) for value in values)
    except TypeError as error:
        raise EditError(f"not an edit: {error}") from None
