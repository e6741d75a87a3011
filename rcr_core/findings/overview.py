"""All that rows show, in sections: one call for a report or a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rcr_core.findings.contrast import contrast_table
from rcr_core.findings.controller import controller_table
from rcr_core.findings.correlations import correlations_table
from rcr_core.findings.costs import cost_table
from rcr_core.findings.detector import detector_table
from rcr_core.findings.evidence import Evidence, evidence_of
from rcr_core.findings.fidelity import fidelity_table
from rcr_core.findings.human import references_table
from rcr_core.findings.layers import layers_table
from rcr_core.findings.paper import paper_table
from rcr_core.findings.pareto import pareto_table
from rcr_core.findings.row import Row
from rcr_core.findings.sweeps import budgets_table, grid_table, rates_table, thresholds_table
from rcr_core.findings.table import Table
from rcr_core.findings.terciles import terciles_table
from rcr_core.findings.wording import counted, images


@dataclass(frozen=True)
class Section:
    """A part of a report: its tables, what they show in a sentence, and the evidence that they are from."""

    id: str
    title: str
    text: str
    evidence: Evidence | None
    tables: tuple[Table, ...]


def sections(rows: Iterable[Row], seed: int = 0, cider: bool = True) -> list[Section]:
    """A section per model and data set, the contrasts of long and short outputs, and the paper's numbers.

    Only tables that have something to say. `cider=False` for a page that asks again and again, see
    `references_table`. Raises `SettingsError` where rows have settings or policies that this release does not
    know.
    """
    found = evidence_of(rows)
    names = _names(found)
    parts = [
        Section(_id(name), name, _text(evidence), evidence, _tables(evidence, seed, cider))
        for name, evidence in zip(names, found, strict=True)
    ]
    return [*parts, *_contrasts(found, names, seed), _paper()]


def _tables(evidence: Evidence, seed: int, cider: bool) -> tuple[Table, ...]:
    tables = (
        fidelity_table(evidence, seed),
        pareto_table(evidence, seed),
        controller_table(evidence),
        terciles_table(evidence, seed),
        correlations_table(evidence),
        layers_table(evidence),
        thresholds_table(evidence, seed),
        budgets_table(evidence, seed),
        rates_table(evidence, seed),
        grid_table(evidence, seed),
        detector_table(evidence, seed),
        cost_table(evidence),
        references_table(evidence, seed, cider),
    )
    return tuple(table for table in tables if table is not None)


def _text(evidence: Evidence) -> str:
    most = max(len(evidence.of(policy)) for policy in evidence.policies)
    policies = len(evidence.policies)
    return (
        f"What {counted(policies, 'policy', 'policies')} {'makes' if policies == 1 else 'make'} of "
        f"{images(most)}, against the uncompressed run of the same model, at "
        f"{evidence.base_text}."
    )


def _contrasts(found: Sequence[Evidence], names: Sequence[str], seed: int) -> list[Section]:
    """Every pair of the same model where one data set has accuracy and the other has not."""
    parts = []
    for captions in found:
        for answers, name in zip(found, names, strict=True):
            if _model(captions) != _model(answers) or _answers(captions) or not _answers(answers):
                continue
            if (table := contrast_table(captions, answers, seed)) is not None:
                title = f"{captions.data} against {name}"
                text = "One selection at prefill and re-selection, in long captions and in short answers."
                parts.append(Section(f"contrast-{_id(title)}", title, text, None, (table,)))
    return parts


def _paper() -> Section:
    text = "What the paper reports of larger models, for orientation."
    return Section("paper", "The paper", text, None, (paper_table(),))


def _names(found: Sequence[Evidence]) -> list[str]:
    """Data set and model, and whatever else tells two of them apart."""
    names = [f"{evidence.data}, {evidence.model}" for evidence in found]
    for more in (
        lambda one: one.dtype,
        lambda one: f"weights {one.weights}",
        lambda one: f"up to {one.rows[0].max_new_tokens} tokens",
    ):
        names = [
            f"{name}, {more(evidence)}" if names.count(name) > 1 else name
            for name, evidence in zip(names, found, strict=True)
        ]
    return names


def _id(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _model(evidence: Evidence) -> tuple[str, str, str]:
    return evidence.model, evidence.dtype, evidence.weights


def _answers(evidence: Evidence) -> bool:
    return any(row.accuracy is not None for row in evidence.rows)
