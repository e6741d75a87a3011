"""InfiniGen's lead in fidelity by image, and its rank correlation with drift and with lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rcr_core.findings.confounds import length_confound
from rcr_core.findings.evidence import Evidence, in_common
from rcr_core.findings.kinds import REFERENCE, title_of
from rcr_core.findings.measures import Rows, having, real
from rcr_core.findings.statistics import spearman
from rcr_core.findings.table import Cell, Column, Table

_AGAINST = ("rcr", "bacon")
_COLUMNS = (
    Column("gap", "gap in fidelity", "text"),
    Column("images", "images", "count"),
    Column("drift", "with mean drift", "number", "Spearman's rank correlation; drift under RCR"),
    Column("length", "with output length", "number", "Spearman's; tokens of the uncompressed run"),
    Column("length_rcr", "with RCR's output length", "number", "Spearman's; tokens of RCR's run"),
)


@dataclass(frozen=True)
class Gap:
    """By sample: InfiniGen's fidelity less that of `policy`, and the mean drift under RCR."""

    policy: str
    leads: dict[str, float]
    drifts: dict[str, float]

    def correlation(self, values: Mapping[str, float]) -> float | None:
        """Spearman's with a number of each image, on the images that have it."""
        known = [sample for sample in self.leads if sample in values]
        return real(spearman(_at(self.leads, known), _at(values, known)))


def gap_to_infinigen(evidence: Evidence, policy: str = "rcr") -> Gap:
    """On the images that InfiniGen, the policy and RCR's drift are known of."""
    infinigen, others = (having(evidence.of(name), "fidelity") for name in ("infinigen", policy))
    drifts = having(evidence.of("rcr"), "mean_drift")
    samples = in_common(infinigen, others, drifts)
    return Gap(
        policy,
        {sample: infinigen[sample].fidelity - others[sample].fidelity for sample in samples},
        {sample: drifts[sample].mean_drift for sample in samples},
    )


def correlations_table(evidence: Evidence) -> Table | None:
    """Spearman of InfiniGen's lead over RCR and over BACON with mean drift and with output lengths."""
    gaps = [gap_to_infinigen(evidence, policy) for policy in _AGAINST]
    rcr = evidence.of("rcr")
    lengths = [_lengths(rows) for rows in (evidence.of(REFERENCE), rcr)]
    rows = [_row(gap, lengths) for gap in gaps]
    rows = [row for row in rows if any(cell is not None for cell in row[2:])]
    if not rows:
        return None
    note = (
        "Spearman's rank correlation over images; the gap is positive where InfiniGen is nearer to the "
        "uncompressed run. Mean drift is the detector's estimate under RCR. For orientation: the paper has "
        "−0.41 with mean drift and −0.01 with output length (Qwen2-VL, DetailCaps); its summary does not "
        f"say in which direction the gap is taken.{length_confound(rcr)}"
    )
    return Table("correlations", "The gap to InfiniGen", _COLUMNS, tuple(rows), note).trimmed()


def _row(gap: Gap, lengths: Iterable[Mapping[str, float]]) -> tuple[Cell, ...]:
    name = f"{title_of('infinigen')} − {title_of(gap.policy)}"
    return (
        name,
        len(gap.leads),
        gap.correlation(gap.drifts),
        *(gap.correlation(steps) for steps in lengths),
    )


def _lengths(rows: Rows) -> dict[str, float]:
    return {sample: row.steps for sample, row in rows.items()}


def _at(values: Mapping[str, float], samples: Iterable[str]) -> list[float]:
    return [values[sample] for sample in samples]
