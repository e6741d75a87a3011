"""The report of a study: one HTML file with every table and figure, and a folder with the tables as files.

The file holds all that it shows, plotly.js too: it opens from a disk and asks for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from pathlib import Path

from rcr_core.errors import StudyError
from rcr_core.findings import Evidence, Row, Table
from rcr_core.findings.overview import Section, sections
from viz.study.figures import STUDY_FIGURES
from viz.study.files import table_csv, table_latex
from viz.study.making import making_html
from viz.study.markup import table_html
from viz.study.page import Drawn, page_html
from viz.study.summary import summary_html
from viz.study.texts import texts_html

NAME = "report.html"
_TABLES = "tables"
TITLE = "What the study found"
_LONGEST = 80  # characters of a file's name
# With which table a figure stands; one whose table is not there stands after the others.
_BESIDE = {
    "fidelity": ("fidelity", "images"),
    "pareto": ("pareto",),
    "controller": ("controller",),
    "terciles": ("terciles",),
    "correlations": ("gap",),
    "layers": ("layers",),
    "thresholds": ("thresholds",),
    "budgets": ("budgets",),
    "rates": ("rates",),
    "grid": ("grid",),
    "detector": ("detector",),
}


@dataclass(frozen=True)
class Part:
    """A table of a section under its own name: no two parts of a report share one."""

    name: str
    table: Table


def report_html(rows: Sequence[Row], command: str, title: str = TITLE, failures: Sequence[str] = ()) -> str:
    """The report as one HTML file. `command` repeats the study, `failures` are tasks that gave no row.

    Raises `SettingsError` where rows have policies or settings that this release does not know.
    """
    return _report(sections(rows), command, title, failures)


def write_report(
    rows: Sequence[Row], folder: Path, command: str, title: str = TITLE, failures: Sequence[str] = ()
) -> list[Path]:
    """Write report.html, tables/*.csv and tables/*.tex into a folder; their paths, the report first.

    Raises `StudyError` where the folder cannot be written, and `SettingsError` as `report_html` does.
    """
    found = sections(rows)
    texts = {folder / NAME: _report(found, command, title, failures)}
    for part in chain.from_iterable(_parts(found)):
        texts[folder / _TABLES / f"{part.name}.csv"] = table_csv(part.table)
        texts[folder / _TABLES / f"{part.name}.tex"] = table_latex(part.table, part.name)
    try:
        (folder / _TABLES).mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise StudyError(f"{folder} cannot be written: {error.strerror}", "give another --out") from None
    return list(texts)


def _report(found: Sequence[Section], command: str, title: str, failures: Sequence[str]) -> str:
    drawn = Drawn()
    contents, body = [], []
    for section, parts in zip(found, _parts(found), strict=True):
        links, html = _section(section, parts, drawn)
        contents.append((section.title, links))
        body.append(html)
    evidence = [section.evidence for section in found if section.evidence is not None]
    made = making_html(evidence, command, failures)
    body.append(_block("making", "How it was made", made))
    contents.append(("How it was made", [("making", "Settings, versions, command")]))
    return page_html(title, _top(evidence), contents, "".join(body), drawn)


def _top(evidence: Sequence[Evidence]) -> str:
    """The summary of every data set."""
    told = [(one, summary_html(one)) for one in evidence]
    told = [(one, text) for one, text in told if text]
    if len(told) < 2:
        return "".join(text for _, text in told)
    return "".join(f'<p class="kind">{escape(one.data)}, {escape(one.model)}</p>{text}' for one, text in told)


def _section(section: Section, parts: Sequence[Part], drawn: Drawn) -> tuple[list[tuple[str, str]], str]:
    """Links for the contents, and the section."""
    links = [(part.name, part.table.title) for part in parts]
    evidence = section.evidence
    figures = [name for part in parts for name in _BESIDE.get(part.table.id, ())] if evidence else []
    blocks = [_part(part, evidence, drawn) for part in parts]
    if evidence:
        blocks += [_figure(name, evidence, drawn) for name in STUDY_FIGURES if name not in figures]
        if texts := texts_html(evidence):
            anchor = f"texts-{parts[0].name}"
            links.append((anchor, "Captions side by side"))
            blocks.append(_block(anchor, "Captions side by side", texts))
    head = f'<h2>{escape(section.title)}</h2><p class="about">{escape(section.text)}</p>'
    return links, f'<section class="evidence">{head}{"".join(blocks)}</section>'


def _part(part: Part, evidence: Evidence | None, drawn: Drawn) -> str:
    figures = _BESIDE.get(part.table.id, ()) if evidence else ()
    # The table's title is that of its first figure too.
    shown = "".join(_figure(name, evidence, drawn, titled=name != figures[0]) for name in figures)
    return _block(part.name, part.table.title, shown + table_html(part.table))


def _block(anchor: str, title: str, html: str) -> str:
    return f'<div class="part" id="{escape(anchor)}"><h3 class="part-title">{escape(title)}</h3>{html}</div>'


def _figure(name: str, evidence: Evidence, drawn: Drawn, titled: bool = True) -> str:
    figure = STUDY_FIGURES[name](evidence)
    return "" if figure is None else drawn.add(name, figure, titled)


def _parts(found: Sequence[Section]) -> list[list[Part]]:
    """The tables of each section with their names, by which a file can be called."""
    ids = [table.id for section in found for table in section.tables]
    taken: set[str] = set()
    named = []
    for section in found:
        parts = []
        for table in section.tables:
            name = table.id if ids.count(table.id) == 1 else f"{table.id}-{section.id}"
            parts.append(Part(_free(name[:_LONGEST], taken), table))
        named.append(parts)
    return named


def _free(name: str, taken: set[str]) -> str:
    """A name that none has yet."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free
