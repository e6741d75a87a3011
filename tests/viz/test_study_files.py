"""Tables of a study as CSV read back as they are, and as LaTeX they are set as they are."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest

from rcr_core.findings import Column, Interval, Table
from rcr_core.findings.overview import sections
from tests.viz.study_samples import made_rows
from viz.study.files import escaped, table_csv, table_latex
from viz.study.numbers import shown

SPECIAL = r"50 % of a_b & c# {d} ~e ^f \g $h <i> |j| \"k\""
TABLE = Table(
    "made",
    "A made table & more",
    (
        Column("policy", "policy", "text"),
        Column("fidelity", "fidelity, 100 %", "score"),
        Column("over_bacon", "over bacon", "score"),
        Column("rate", "rate", "share"),
        Column("count", "images", "count"),
        Column("reads", "reads", "number"),
    ),
    (
        ("rcr", Interval(0.742, 0.701, 0.783, 40), Interval(-0.0321, -0.05, 0.01, 40), 0.423, 40, 67.5),
        ("full", 1.0, None, None, 12345, 0.0),
        (SPECIAL, Interval(0.5, math.nan, math.nan, 1), 0.25, 0.9973, 1, 0.0304),
        ("=1+1", None, None, 0.0, 2, None),
    ),
    "Means over images: 95 % intervals.",
)


def all_tables() -> list[Table]:
    return [table for section in sections(made_rows(12)) for table in section.tables]


def number(text: str) -> float | None:
    return float(text) if text else None


def expected_cells(cell, wide: bool) -> list:
    """What a cell of a table is in CSV, one value a column."""
    if isinstance(cell, Interval):
        return [None if math.isnan(value) else value for value in (cell.mean, cell.low, cell.high)]
    return [cell, None, None] if wide else [cell]


@pytest.mark.parametrize("table", [TABLE, *all_tables()], ids=lambda table: table.id)
def test_csv_reads_back_as_the_table(table):
    head, *lines = csv.reader(io.StringIO(table_csv(table), newline=""))
    wide = [any(isinstance(cell, Interval) for cell in column) for column in zip(*table.rows, strict=True)]
    names = [
        name
        for column, three in zip(table.columns, wide, strict=True)
        for name in ([column.id, f"{column.id}_low", f"{column.id}_high"] if three else [column.id])
    ]
    assert head == names
    assert len(lines) == len(table.rows)
    for line, row in zip(lines, table.rows, strict=True):
        values = [
            value for cell, three in zip(row, wide, strict=True) for value in expected_cells(cell, three)
        ]
        for text, value in zip(line, values, strict=True):
            if isinstance(value, str):
                assert text.removeprefix("'") == value
            else:
                assert number(text) == value


def test_no_text_of_a_csv_is_a_formula():
    texts = ("=1+1", "+1", "-1", "@x", "\t=1", " =1", "'=1")
    table = Table("t", "t", (Column("a", "a", "text"),), tuple((text,) for text in texts))
    cells = [line[0] for line in csv.reader(io.StringIO(table_csv(table), newline=""))][1:]
    assert cells == [f"'{text}" for text in texts]
    fine = Table("t", "t", (Column("a", "a", "text"), Column("b", "b", "number")), (("1-1", -1.5),))
    assert table_csv(fine).splitlines()[1] == "1-1,-1.5"


def bare(text: str) -> str:
    """LaTeX without its escaped signs."""
    return re.sub(r"\\[\\{}$&#%_,]", "", text)


@pytest.mark.parametrize("table", [TABLE, *all_tables()], ids=lambda table: table.id)
def test_latex_is_sound(table):
    text = table_latex(table)
    assert text.count("\\begin{") == text.count("\\end{") == 2
    depth = 0
    for sign in bare(text):
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    assert not re.search(r"[#%^]", bare(text))
    assert bare(text).count("$") % 2 == 0
    body = text[text.index("\\toprule") : text.index("\\bottomrule")]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(lines) == 1 + len(table.rows)
    for line in lines:
        assert bare(line.removesuffix(r"\\")).count("&") == len(table.columns) - 1
        assert not line.startswith("[")  # LaTeX would take it for the distance to the row above


def test_latex_says_what_the_table_says():
    text = table_latex(TABLE)
    assert "\\begin{table}" in text and "\\centering" in text
    assert (
        "\\caption[A made table \\& more]{A made table \\& more. Means over images: 95~\\% intervals.}"
        in text
    )
    assert "\\label{tab:made}" in text
    assert "\\begin{tabular}{lrrrrr}" in text
    assert "policy & fidelity, 100~\\% & over BACON & rate & images & reads" in text
    assert "RCR & .742 [.701, .783] & $-$.032 [$-$.050, .010] & 42~\\% & 40 & 67.5" in text
    assert "Uncompressed & 1.000 & -- & -- & 12\\,345 & 0" in text
    assert "& .500 & .250 & 99.7~\\% & 1 & 0.0304" in text
    assert "\\label{tab:other}" in table_latex(TABLE, "other")


def test_every_special_sign_is_escaped():
    assert escaped(r"a_b & 5 % #1 {x} ~ ^ \ $ <>") == (
        r"a\_b \& 5~\% \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \$ "
        r"\textless{}\textgreater{}"
    )
    table = Table("t", "t", (Column("a", "a", "text"),), (("[x]",), ("a\nb",)))
    assert "{[}x]" in table_latex(table)
    assert "a b \\\\" in table_latex(table)


@pytest.mark.parametrize(
    ("cell", "kind", "text"),
    [
        (0.742, "score", ".742"),
        (-0.0321, "score", "−.032"),
        (1.0, "score", "1.000"),
        (0.9999, "score", "1.000"),
        (-0.0001, "score", ".000"),
        (0.423, "share", "42 %"),
        (0.083, "share", "8.3 %"),
        (0.997, "share", "99.7 %"),
        (1.0, "share", "100 %"),
        (0.0, "share", "0 %"),
        (0.0002, "share", "0.02 %"),
        (12345, "count", "12\N{NARROW NO-BREAK SPACE}345"),
        (0.02, "number", "0.02"),
        (0.4901, "number", "0.490"),
        (64.0, "number", "64"),
        (67.512, "number", "67.5"),
        (1234.5, "number", "1234"),
        (0.0, "number", "0"),
        (0.00003, "number", "3.00e−05"),
        (math.inf, "number", "∞"),
        (None, "score", "–"),
        (math.nan, "score", "–"),
        ("as it is", "text", "as it is"),
        (Interval(0.5, math.nan, math.nan, 1), "score", ".500"),
        (Interval(0.42, 0.4, 0.451, 9), "share", "42 % [40, 45]"),
    ],
)
def test_numbers_are_shown_with_the_digits_of_their_kind(cell, kind, text):
    assert shown(cell, kind) == text
