"""One row of a study: what one image came to under one policy at one setting.

A row is self-contained (settings, model, versions), so that rows of several studies make one study.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from rcr_core.errors import StudyError

VERSION = 1
_KINDS = {
    "data": str,
    "sample": str,
    "prompt": str,
    "model": str,
    "policy": str,
    "text": str,
    "settings": dict,
    "shape": dict,
    "tokens": list,
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One finished run. A number that the run does not have is None.

    data, sample       the data set's name, and the image's id within it
    weights            fingerprint of the model's weights: a folder's name may come again with others
    settings           all of `Settings`, by name
    shape              layers, kv_heads, query_groups, head_dim, prefix_length, prompt_length
    refresh_by_layer   refresh rate of each layer, None for a layer that decides nothing
    tau_end            the threshold of the last decision
    settles_at         first step from which the running refresh rate stays within 5 points of rho, for at
                       least 10 steps and to the end
    identity_rate      the refresh rate that the controller identity gives for that tau_end
    staleness          per layer: share of adjacent steps with the same most-attended prefix entry
    recall             share of the true top S among the candidates (detector diagnostic)
    drift_exact        mean exact drift over the decisions (diagnostic), as mean_drift is the estimate's
    exchanged          prefix entries per KV head and decision that were not selected at the step before
    objects_right      of the `objects` of a bundled scene, those with all four attributes right
    accuracy           of a short answer, see `vqa`
    reference_rouge    ROUGE-L F1 against the best of the human `references`
    fidelity           ROUGE-L F1 against the uncompressed run of the same image
    diverges_at        first step whose token differs from that run's; -1 where none does
    seconds            what the run took
    """

    data: str
    sample: str
    prompt: str
    model: str
    dtype: str
    weights: str
    device: str
    policy: str
    settings: dict[str, Any]
    max_new_tokens: int
    text: str
    tokens: list[int]
    stop_reason: str
    shape: dict[str, int]
    seconds: float
    versions: dict[str, str]
    refresh_rate: float | None = None
    refresh_by_layer: list[float | None] | None = None
    mean_drift: float | None = None
    tau_end: float | None = None
    settles_at: int | None = None
    identity_rate: float | None = None
    staleness: list[float | None] | None = None
    recall: float | None = None
    drift_exact: float | None = None
    exchanged: float | None = None
    objects: int | None = None
    objects_right: int | None = None
    accuracy: float | None = None
    references: list[str] = field(default_factory=list)
    reference_rouge: float | None = None
    fidelity: float | None = None
    diverges_at: int | None = None
    scene: dict[str, int] | None = None
    version: int = VERSION

    @property
    def steps(self) -> int:
        """Generated tokens."""
        return len(self.tokens)

    @property
    def key(self) -> str:
        """Which task this is the result of."""
        return task_key(
            self.data,
            self.sample,
            self.prompt,
            self.model,
            self.dtype,
            self.weights,
            self.policy,
            self.settings,
            self.max_new_tokens,
        )

    def to_json(self) -> str:
        """One line of a results file."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Row:
        """Raises `StudyError` on a row of another version, or with fields that a row does not have."""
        if values.get("version") != VERSION:
            raise StudyError(f"a row has version {values.get('version')!r}, this release reads {VERSION}")
        specs = {spec.name: spec for spec in fields(cls)}
        if unknown := sorted(set(values) - set(specs)):
            raise StudyError(f"a row has an unknown field {unknown[0][:60]!r}", "written by a newer release?")
        for name, spec in specs.items():
            if name not in values and spec.default is MISSING and spec.default_factory is MISSING:
                raise StudyError(f"a row lacks the field {name!r}", "the file is damaged")
        for name, kind in _KINDS.items():
            if not isinstance(values[name], kind):
                raise StudyError(f"the field {name!r} of a row is no {kind.__name__}", "the file is damaged")
        return cls(**values)


def task_key(
    data: str,
    sample: str,
    prompt: str,
    model: str,
    dtype: str,
    weights: str,
    policy: str,
    settings: Mapping[str, Any],
    max_new_tokens: int,
) -> str:
    """The name of one (image, policy, settings) on a model, wherever and whenever it is run.

    A prefix on the device goes unnamed, as in rows from before it could lie elsewhere.
    """
    named = {name: value for name, value in settings.items() if (name, value) != ("offload", "none")}
    parts = [
        data,
        sample,
        prompt,
        model,
        dtype,
        weights,
        policy,
        dict(sorted(named.items())),
        max_new_tokens,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
