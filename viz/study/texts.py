"""Captions side by side: the uncompressed one, BACON's and RCR's, and the word where they leave it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from rcr_core.findings import Evidence, Row
from rcr_core.findings.evidence import in_common
from rcr_core.findings.kinds import REFERENCE
from viz.study.looks import look_of
from viz.study.names import title_of
from viz.study.numbers import shown

SIDE_BY_SIDE = (REFERENCE, "bacon", "rcr")
_WORD = re.compile(r"\S+\s*|\s+")
_KINDS = ("where RCR is nearest to the uncompressed run", "the middle one", "where RCR is furthest from it")


@dataclass(frozen=True)
class Parted:
    """A text in three parts: what it shares with the uncompressed one, its first other word, and the rest."""

    shared: str
    first: str
    rest: str


def parted(text: str, reference: str) -> Parted:
    """Where a text leaves its reference, by words."""
    words, others = _WORD.findall(text), _WORD.findall(reference)
    same = next(
        (
            at
            for at, (one, other) in enumerate(zip(words, others, strict=False))
            if one.strip() != other.strip()
        ),
        min(len(words), len(others)),
    )
    return Parted("".join(words[:same]), "".join(words[same : same + 1]), "".join(words[same + 1 :]))


def chosen(evidence: Evidence) -> list[tuple[str, str]]:
    """Three images of those that all three policies ran on, by RCR's fidelity: (sample, which one it is)."""
    rows = [evidence.of(policy) for policy in SIDE_BY_SIDE]
    rcr = rows[-1]
    order = sorted(
        (sample for sample in in_common(*rows) if rcr[sample].fidelity is not None),
        key=lambda sample: -rcr[sample].fidelity,
    )
    if len(order) < len(_KINDS):
        return [(sample, "") for sample in order]
    return list(zip((order[0], order[len(order) // 2], order[-1]), _KINDS, strict=True))


def texts_html(evidence: Evidence) -> str:
    """The captions of three images in columns; empty where no image was run under all three policies."""
    columns = {policy: evidence.of(policy) for policy in SIDE_BY_SIDE}
    found = []
    for sample, which in chosen(evidence):
        reference = columns[REFERENCE][sample]
        cells = "".join(_column(rows[sample], reference) for rows in columns.values())
        prompt = escape(reference.prompt)
        note = f", {which}" if which else ""
        found.append(
            f'<article class="sample"><h4 class="name">{escape(sample)}<small>{note}</small></h4>'
            f'<p class="prompt">{prompt}</p><div class="columns">{cells}</div></article>'
        )
    return "".join(found)


def _column(row: Row, reference: Row) -> str:
    colour = look_of(row.policy).colour
    head = f'<h5 style="--policy: {colour}">{escape(title_of(row.policy))}</h5>'
    if row.policy == REFERENCE:
        return f"<section>{head}<p class='score'>{_objects(row)}&nbsp;</p><p>{escape(row.text)}</p></section>"
    parts = parted(row.text, reference.text)
    word = parts.first.rstrip()
    mark = f"<mark>{escape(word)}</mark>{parts.first[len(word) :]}" if word else ""
    if not mark and row.diverges_at is not None and row.diverges_at >= 0:
        mark = "<mark>(ends here)</mark>"
    text = f'<span class="shared">{escape(parts.shared)}</span>{mark}{escape(parts.rest)}'
    details = [f"fidelity {shown(row.fidelity, 'score')}", _objects(row), _leaves(row)]
    score = ", ".join(one for one in details if one)
    return f'<section>{head}<p class="score">{score}</p><p>{text}</p></section>'


def _objects(row: Row) -> str:
    return "" if row.objects is None else f"{row.objects_right} of {row.objects} objects right"


def _leaves(row: Row) -> str:
    if row.diverges_at is None:
        return ""
    return "the same to the end" if row.diverges_at < 0 else f"leaves at step {row.diverges_at}"
