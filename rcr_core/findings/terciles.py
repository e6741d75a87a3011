"""Whether drift matters: fidelity, refresh rates and lengths in thirds of the images by mean drift."""

from __future__ import annotations

from rcr_core.findings.confounds import length_confound
from rcr_core.findings.evidence import Evidence, on_common
from rcr_core.findings.kinds import REFERENCE, TRIGGERED
from rcr_core.findings.measures import Rows, average, having, mean, numbers
from rcr_core.findings.row import Row
from rcr_core.findings.statistics import terciles
from rcr_core.findings.table import Cell, Column, Table
from rcr_core.findings.wording import images

COMPARED = ("bacon", "threshold", "rcr", "exact", "infinigen")
THIRDS = ("low", "middle", "high")
_MEASURED = ("rcr", REFERENCE)  # whose tokens are told

_TERCILES = (
    Column("third", "drift", "text", "third of the images by mean drift under RCR"),
    Column("images", "images", "count"),
    Column("lowest_drift", "from", "score", "lowest mean drift"),
    Column("highest_drift", "to", "score", "highest mean drift"),
    *(Column(policy, f"fidelity, {policy}", "score") for policy in COMPARED),
    *(Column(f"rate_{policy}", f"refresh rate, {policy}", "share") for policy in TRIGGERED),
    *(Column(f"steps_{policy}", f"tokens, {policy}", "number", "mean") for policy in _MEASURED),
)


def terciles_table(evidence: Evidence, seed: int = 0) -> Table | None:
    """A row per third; None with fewer than three images that RCR has a mean drift of."""
    rcr = having(evidence.of("rcr"), "fidelity", "mean_drift")
    others = {policy: having(evidence.of(policy), "fidelity") for policy in COMPARED if policy != "rcr"}
    found = on_common({"rcr": rcr, **others})
    full = evidence.of(REFERENCE)
    samples = list(found.get("rcr", ()))
    if len(samples) < len(THIRDS):
        return None
    thirds = terciles(numbers(found["rcr"], "mean_drift"))
    rows = tuple(
        _third(
            name,
            {
                policy: _part(rows, [samples[at] for at in third])
                for policy, rows in {**found, REFERENCE: full}.items()
            },
            seed,
        )
        for name, third in zip(THIRDS, thirds, strict=True)
    )
    note = (
        f"{images(len(samples))} that all of these policies have, at {evidence.base_text}. Thirds are by "
        "mean drift as the detector estimates it under RCR; it also depends on how fresh RCR's selections "
        f"are, see the refresh rates. Brackets: 95 % bootstrap intervals within the third (seed {seed})."
        f"{length_confound(found['rcr'])}"
    )
    return Table("terciles", "Thirds by drift", _TERCILES, rows, note).trimmed()


def _third(name: str, found: dict[str, dict[str, Row]], seed: int) -> tuple[Cell, ...]:
    drift = numbers(found["rcr"], "mean_drift")
    return (
        name,
        len(drift),
        float(drift.min()),
        float(drift.max()),
        *(average(found.get(policy, {}), "fidelity", seed) for policy in COMPARED),
        *(mean(found.get(policy, {}), "refresh_rate") for policy in TRIGGERED),
        *(mean(found.get(policy, {}), "steps") for policy in _MEASURED),
    )


def _part(rows: Rows, samples: list[str]) -> dict[str, Row]:
    return {sample: rows[sample] for sample in samples if sample in rows}
