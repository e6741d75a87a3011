"""All tables of a study at once: what is there is shown, and nothing that JSON has no word for."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

import numpy as np
import pytest

from rcr_core.findings import Column, Interval, Table
from rcr_core.findings.overview import sections
from rcr_core.findings.paper import paper_table
from tests.core.findings_samples import at, made

POLICIES = ("full", "bacon", "snapkv", "oracle", "exact", "threshold", "rcr", "quest", "arkvale", "infinigen")
ONE_SHOT = ("full", "bacon", "snapkv", "oracle")


def study(images: int, data: str = "pictures", **numbers) -> list:
    """Every policy and every sweep."""
    variants = [(policy, {}) for policy in POLICIES]
    variants += [(policy, {"select": select}) for policy in POLICIES[1:] for select in (8, 16, 64)]
    variants += [("threshold", {"tau0": tau0}) for tau0 in (0.02, 0.05, 0.08, 0.11, 0.15)]
    variants += [("rcr", {"rho": rho}) for rho in (0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8)]
    variants += [("rcr", {"update": "step"})]
    variants += [("rcr", {"rank": rank, "diagnostics": True}) for rank in (4, 8, 16, 32)]
    variants += [("rcr", {"select": 64, "rho": rho}) for rho in (0.6, 0.8)]
    rng = np.random.default_rng(0)
    return [
        _run(policy, f"{image}", settings, rng, {"data": data, **numbers})
        for policy, settings in variants
        for image in range(images)
    ]


def _run(policy: str, sample: str, settings: dict, rng, numbers: dict):
    decided = policy not in ONE_SHOT
    triggered = policy in ("rcr", "threshold")
    values = {
        "fidelity": 1.0 if policy == "full" else float(rng.uniform(0.3, 0.9)),
        "diverges_at": -1 if policy == "full" else int(rng.integers(0, 50)),
        "refresh_rate": float(rng.uniform(0.3, 0.5)) if decided else None,
        "mean_drift": float(rng.uniform(0, 1)) if decided else None,
        "refresh_by_layer": [0.3, 0.5] if triggered else None,
        "tau_end": 0.1 if triggered else None,
        "identity_rate": 0.4 if policy == "rcr" else None,
        "staleness": [0.4, 0.8] if policy == "full" else None,
    }
    if settings.get("diagnostics"):
        values |= {"recall": float(rng.uniform(0.8, 1)), "drift_exact": float(rng.uniform(0, 1))}
    return made(policy, sample, settings, **{**values, **numbers})


def ids(section) -> list[str]:
    return [table.id for table in section.tables]


def plain(section) -> str:
    """Strict JSON of every cell: fails on a number that JSON does not have."""
    cells = [
        asdict(cell) if isinstance(cell, Interval) else cell
        for table in section.tables
        for row in table.rows
        for cell in row
    ]
    return json.dumps(cells, allow_nan=False)


def test_a_whole_study_has_every_table():
    found = sections(study(12, reference_rouge=0.5, references=["a red ball"], objects=4, objects_right=2))
    assert [section.id for section in found] == ["pictures-model", "paper"]
    assert ids(found[0]) == [
        "fidelity",
        "pareto",
        "controller",
        "terciles",
        "correlations",
        "layers",
        "thresholds",
        "budgets",
        "rates",
        "grid",
        "detector",
        "cost",
        "references",
    ]
    assert "10 policies make of 12 images" in found[0].text
    assert found[0].evidence.data == "pictures"
    plain(found[0])


@pytest.mark.parametrize("images", [1, 2, 3])
def test_few_images_give_no_number_that_json_has_not(images):
    for section in sections(study(images, reference_rouge=0.5, references=["a red ball"])):
        plain(section)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_alone_gives_what_it_can(policy):
    rows = [row for row in study(3) if row.policy == policy and row.settings == at()]
    section = sections(rows)[0]
    assert {"fidelity", "cost"} <= set(ids(section))
    assert len(section.tables[0].rows) == 1
    plain(section)


def test_rows_with_nothing_but_a_text():
    section = sections([made(policy, 0) for policy in POLICIES])[0]
    assert ids(section) == ["fidelity", "cost"]
    plain(section)


def test_no_rows_leave_the_paper():
    assert [section.id for section in sections([])] == ["paper"]


def test_long_and_short_outputs_of_one_model_are_contrasted():
    long = study(3)
    short = study(3, "questions", accuracy=1.0)
    other = study(3, "elsewhere", model="another")
    found = sections([*long, *short, *other])
    assert [section.id for section in found] == [
        "pictures-model",
        "questions-model",
        "elsewhere-another",
        "contrast-pictures-against-questions-model",
        "paper",
    ]
    assert ids(found[3]) == ["contrast"]


def test_sections_that_differ_in_one_thing_have_different_names():
    rows = [
        made("full", 0, **one)
        for one in ({}, {"dtype": "float16"}, {"weights": "decaf"}, {"max_new_tokens": 9})
    ]
    found = [section.id for section in sections(rows)]
    assert len(set(found)) == 5
    assert found[1] == "pictures-model-float16"


def test_a_large_study_is_worked_out_in_a_moment():
    rows = study(220)
    assert len(rows) > 12_000
    began = time.process_time()
    sections(rows)
    assert time.process_time() - began < 3


def test_the_papers_numbers_name_their_source_and_tables_that_there_are():
    table = paper_table()
    assert "Drift Says When, Budget Says How Much" in table.note
    assert "published summary" in table.note
    made_here = {
        one.id
        for section in sections([*study(3), *study(3, "questions", accuracy=1.0)])
        for one in section.tables
    }
    assert set(table.column("table")) <= made_here


def test_a_table_refuses_ragged_rows_and_drops_empty_columns():
    columns = (Column("a", "a", "text"), Column("b", "b", "number"), Column("c", "c", "number"))
    with pytest.raises(ValueError, match="2 cells, not 3"):
        Table("t", "t", columns, (("x", 1),))
    trimmed = Table("t", "t", columns, (("x", None, 0), ("y", None, None))).trimmed()
    assert [one.id for one in trimmed.columns] == ["a", "c"]
    assert trimmed.rows == (("x", 0), ("y", None))
