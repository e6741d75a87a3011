"""One selection against re-selection: long captions beside short answers of the same model.

The first token of an output comes from the prefill, which sees the whole prefix: only what follows it can
tell one selection from another.
"""

from __future__ import annotations

from rcr_core.findings.evidence import Evidence, on_common
from rcr_core.findings.kinds import ORACLE, REFERENCE
from rcr_core.findings.measures import Rows, after_selection, average, having, mean, same_words
from rcr_core.findings.table import Cell, Column, Table
from rcr_core.findings.wording import by_prefill, images

COMPARED = (ORACLE, "bacon", "exact", "rcr", REFERENCE)
_SIDES = ("captions", "answers")


def contrast_table(captions: Evidence, answers: Evidence, seed: int = 0) -> Table | None:
    """A row per policy; None where the two data sets share none but the uncompressed run."""
    sides = dict(zip(_SIDES, (captions, answers), strict=True))
    found = {name: _columns(evidence) for name, evidence in sides.items()}
    policies = [policy for policy in COMPARED if all(policy in columns for columns in found.values())]
    if not set(policies) - {REFERENCE}:
        return None
    rows = tuple(
        (policy, *_side(found["captions"][policy], seed), *_side(found["answers"][policy], seed))
        for policy in policies
    )
    told = (
        f"{name.capitalize()}: {_count(found[name])} of {evidence.data} at {evidence.base_text}."
        for name, evidence in sides.items()
    )
    note = " ".join((*told, *_shown(found)))
    columns = (Column("policy", "policy", "text"), *(one for name in _SIDES for one in _heads(name)))
    return Table("contrast", "Long captions against short answers", columns, rows, note).trimmed()


def _columns(evidence: Evidence) -> dict[str, Rows]:
    return on_common({policy: having(evidence.of(policy), "fidelity") for policy in COMPARED})


def _shown(found: dict[str, dict[str, Rows]]) -> list[str]:
    """What the two sides can show, by how much of each was chosen after the selection."""
    tokens = {
        side: max(after_selection(rows) for rows in columns.values()) for side, columns in found.items()
    }
    said = [f"{side.capitalize()}: {by_prefill(few)}." for side, few in tokens.items() if few <= 1]
    if not said and ORACLE in found["captions"] and "exact" in found["captions"]:
        said = [
            "The oracle selects once, by the attention of the uncompressed answer; exact re-selection keeps "
            "as many entries, chosen anew in every step. Their difference is what choosing anew is worth."
        ]
    return said


def _heads(side: str) -> tuple[Column, ...]:
    return (
        Column(f"{side}_steps", f"{side}: steps", "number", "generated tokens, mean"),
        Column(
            f"{side}_after",
            f"{side}: tokens after the selection",
            "number",
            "all but the first, which the prefill chooses with the whole prefix in sight; mean",
        ),
        Column(f"{side}_fidelity", f"{side}: fidelity", "score", "ROUGE-L F1 against the uncompressed run"),
        Column(
            f"{side}_same_words", f"{side}: same words", "share", "images with the very words of that run"
        ),
        Column(f"{side}_accuracy", f"{side}: accuracy", "score"),
    )


def _side(rows: Rows, seed: int) -> tuple[Cell, ...]:
    return (
        mean(rows, "steps"),
        after_selection(rows),
        average(rows, "fidelity", seed),
        same_words(rows),
        average(rows, "accuracy", seed),
    )


def _count(columns: dict[str, Rows]) -> str:
    return images(len(next(iter(columns.values()))))
