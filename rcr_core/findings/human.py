"""Against references, which people wrote as a rule: ROUGE-L, and CIDEr where its package is installed."""

from __future__ import annotations

from rcr_core.findings.cider import cider_scores, installed
from rcr_core.findings.evidence import Evidence, on_common
from rcr_core.findings.kinds import REFERENCE
from rcr_core.findings.measures import Rows, average, cell, gain, having
from rcr_core.findings.statistics import interval
from rcr_core.findings.table import Cell, Column, Table
from rcr_core.findings.wording import images

_COLUMNS = (
    Column("policy", "policy", "text"),
    Column("images", "images", "count"),
    Column("rouge", "ROUGE-L", "score", "F1 against the best of the references"),
    Column("over_full", "over full", "score", "paired difference of ROUGE-L to the uncompressed run"),
    Column("cider", "CIDEr-D", "number", "against all references, usually between 0 and 10"),
)
_NO_PACKAGE = "CIDEr is left out: the package pycocoevalcap is not installed."
_NO_CIDER = "CIDEr is left out: it needs at least two images, each with references."
_CIDER = (
    "CIDEr-D by pycocoevalcap, on lower-case words without punctuation (the tokeniser that it is published "
    "with needs Java), so that it compares policies here, not with published numbers."
)


def references_table(evidence: Evidence, seed: int = 0, cider: bool = True) -> Table | None:
    """A row per policy, on common images; None where there are no references, or they answer a question.

    `cider=False` leaves CIDEr out: it takes about a millisecond a caption and reference.
    """
    found = on_common(
        {policy: having(evidence.of(policy), "reference_rouge") for policy in evidence.policies}
    )
    if not found or any(having(rows, "accuracy") for rows in found.values()):
        return None
    full = found.get(REFERENCE, {})
    rows = tuple(
        (
            policy,
            len(rows),
            average(rows, "reference_rouge", seed),
            None if policy == REFERENCE else gain(rows, full, "reference_rouge", seed),
            _cider(rows, seed) if cider else None,
        )
        for policy, rows in found.items()
    )
    count = len(next(iter(found.values())))
    note = (
        f"{images(count)} that all of these policies have, at {evidence.base_text}. Brackets: 95 % bootstrap "
        f"intervals over images (seed {seed})."
    )
    if cider:
        scored = any(row[-1] is not None for row in rows)
        note += f" {_CIDER if scored else _NO_CIDER if installed() else _NO_PACKAGE}"
    return Table("references", "Against references", _COLUMNS, rows, note).trimmed()


def _cider(rows: Rows, seed: int) -> Cell:
    scores = cider_scores(
        tuple(row.text for row in rows.values()), tuple(tuple(row.references) for row in rows.values())
    )
    return None if scores is None else cell(interval(scores, seed))
