"""The README's tables of the shipped study say what its results file says."""

from pathlib import Path

import pytest

from rcr_core.findings import Interval, evidence_of, read_results
from rcr_core.findings.fidelity import fidelity_table
from rcr_core.findings.sweeps import grid_table, rates_table, thresholds_table

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def scenes():
    rows = read_results([ROOT / "assets" / "study" / "results.jsonl.gz"])
    return next(one for one in evidence_of(rows) if one.data == "scenes")


def score(cell, sign=""):
    if cell is None:
        return ""
    if isinstance(cell, Interval):
        return f"{score(cell.mean, sign)} [{score(cell.low, sign)}, {score(cell.high, sign)}]"
    return f"{cell:{sign}.3f}".replace("0.", ".", 1).replace("-", "−")


def percent(cell):
    """Whole per cents; what is not quite everything does not look as if it were."""
    if cell is None:
        return ""
    return f"{100 * cell:.1f} %" if 0.995 <= cell < 1 else f"{100 * cell:.0f} %"


def number(cell):
    return "" if cell is None else f"{cell:.3g}"


def lines(table, **columns):
    """A README line for every row of a table: the columns by id, each as its function writes it."""
    cells = [[write(cell) for cell in table.column(name)] for name, write in columns.items()]
    return ["| " + " | ".join(row) + " |" for row in zip(*cells, strict=True)]


def main_lines(scenes):
    return lines(
        fidelity_table(scenes),
        policy=str,
        fidelity=score,
        over_bacon=lambda cell: score(cell, "+"),
        refresh_rate=percent,
        reads=number,
        objects_right=percent,
    )


def threshold_lines(scenes):
    return lines(
        thresholds_table(scenes),
        policy=str,
        tau0=lambda cell: f"{cell:g}",
        refresh_rate=percent,
        reads=number,
        fidelity=score,
        objects_right=percent,
    )


def rate_lines(scenes):
    results = {"refresh_rate": percent, "reads": number, "fidelity": score, "objects_right": percent}
    return lines(rates_table(scenes), rho=percent, **results)


def grid_lines(scenes):
    table = grid_table(scenes)
    names = [column.id for column in table.columns if column.id.startswith("objects_")]
    return lines(table, select=str, **dict.fromkeys(names, percent))


@pytest.mark.parametrize("make", [main_lines, threshold_lines, rate_lines, grid_lines])
def test_every_line_of_a_table_is_in_the_readme(scenes, make):
    made = make(scenes)
    assert len(made) > 3
    missing = [line for line in made if line not in README]
    assert not missing, "the README lacks:\n" + "\n".join(missing)
