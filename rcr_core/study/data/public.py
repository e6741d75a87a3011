"""The public sets of the paper, each with the prompt and the length that their benchmarks use.

By its name a set comes from the hub, through the package `datasets`; as NAME@DIR from parquet files that lie
on this machine in the hub's layout.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rcr_core.errors import StudyError
from rcr_core.study.data.hub import hub_rows
from rcr_core.study.data.parquet import ParquetRows
from rcr_core.study.data.pictures import picture_in_cell
from rcr_core.study.data.sample import DEFAULT_PROMPT, DEFAULT_TOKENS, Sample, Source, numbered


class Rows(Protocol):
    """What both ways to a set have in common."""

    def __len__(self) -> int: ...
    def require(self, columns: Sequence[str], name: str) -> None: ...
    def values(self, columns: Sequence[str]) -> list[dict[str, Any]]: ...
    def cell(self, column: str, index: int) -> Any: ...


@dataclass(frozen=True)
class PublicSet:
    """Where a set lies on the hub, and what its columns are called.

    references: columns that each hold a text or a list of texts; question: put into the prompt.
    """

    repository: str
    split: str
    image: str
    id: str
    prompt: str
    max_new_tokens: int
    references: tuple[str, ...] = ()
    question: str | None = None
    answers: str | None = None

    @property
    def texts(self) -> list[str]:
        """All columns but the image."""
        named = (self.id, *self.references, self.question, self.answers)
        return [column for column in named if column is not None]


PUBLIC = {
    "textcaps": PublicSet(
        repository="lmms-lab/TextCaps",
        split="val",
        image="image",
        id="image_id",
        prompt="Provide a one-sentence caption for the provided image.",
        max_new_tokens=64,
        references=("caption_str",),
    ),
    "detailcaps": PublicSet(
        repository="foundation-multimodal-models/DetailCaps-4870",
        split="test",
        image="binary",
        id="image",
        prompt=DEFAULT_PROMPT,
        max_new_tokens=DEFAULT_TOKENS,
        references=("GT_Caption_GPT4O", "GT_Caption_GPT4V", "GT_Caption_Gemini15Pro"),
    ),
    "textvqa": PublicSet(
        repository="lmms-lab/textvqa",
        split="validation",
        image="image",
        id="question_id",
        prompt="{question}\nAnswer the question using a single word or phrase.",
        max_new_tokens=16,
        question="question",
        answers="answers",
    ),
}


def public_source(name: str, folder: str | None = None) -> Source:
    """A public set from the hub, or from the parquet files in a folder. Raises `StudyError`."""
    chosen = PUBLIC[name]
    if folder is None:
        rows: Rows = hub_rows(chosen.repository, chosen.split, name)
    else:
        rows = ParquetRows(shards(os.path.expanduser(folder), chosen.split))
    return _source(name, chosen, rows)


def shards(folder: str, split: str) -> list[Path]:
    """The parquet files of a split, sorted: those that begin with its name, or all where none does.

    A copy of the whole repository, with its files in `data/`, does as well. Raises `StudyError`.
    """
    if not os.path.isdir(folder):
        raise StudyError(f"there is no folder {folder!r}", "NAME@DIR takes a folder of parquet files")
    found = sorted(Path(folder).glob("*.parquet")) or sorted(Path(folder).glob("data/*.parquet"))
    if not found:
        raise StudyError(
            f"there are no parquet files in {folder}", "put the files of the set's repository there"
        )
    return [path for path in found if path.name.startswith(f"{split}-")] or found


def _source(name: str, chosen: PublicSet, rows: Rows) -> Source:
    rows.require([chosen.image, *chosen.texts], name)
    values = rows.values(chosen.texts)
    ids = numbered(str(row[chosen.id]) for row in values)

    def make(index: int) -> Sample:
        row, own = values[index], ids[index]
        return Sample(
            id=own,
            prompt=_prompt(chosen, row),
            read=partial(_picture, rows, chosen.image, index, own),
            max_new_tokens=chosen.max_new_tokens,
            references=_texts(row, chosen.references),
            answers=_texts(row, (chosen.answers,) if chosen.answers else ()),
        )

    return Source(name, len(rows), make)


def _prompt(chosen: PublicSet, row: dict[str, Any]) -> str:
    if chosen.question is None:
        return chosen.prompt
    # `capitalize` also makes the rest lower case, as the benchmark's prompt does.
    return chosen.prompt.format(question=str(row[chosen.question]).capitalize())


def _texts(row: dict[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for column in columns:
        value = row[column]
        found += [value] if isinstance(value, str) else value or []
    return tuple(found)


def _picture(rows: Rows, column: str, index: int, sample: str) -> bytes:
    return picture_in_cell(rows.cell(column, index), sample)
