"""Tables over settings, against numbers worked out by hand: always on common images."""

from __future__ import annotations

import pytest

from rcr_core.findings.detector import detector_table
from rcr_core.findings.pareto import frontier, pareto_table, points
from rcr_core.findings.sweeps import budgets_table, grid_table, rates_table, thresholds_table
from tests.core.findings_samples import column, evidence, made, mean


def means(table, name) -> list:
    return [mean(cell) for cell in table.column(name)]


BACON = column("bacon", [0.2, 0.4, 0.9], refresh_rate=0.0)
RCR = column("rcr", [0.7, 0.8, 0.3], refresh_rate=0.4, objects=10, objects_right=6)


def threshold(tau0: float, fidelities: list[float], **numbers) -> list:
    return column("threshold", fidelities, {"tau0": tau0}, **numbers)


def test_thresholds_beside_rcr_on_the_same_images():
    table = thresholds_table(
        evidence(
            BACON,
            RCR,
            threshold(0.03, [0.5, 0.7, 0.9], refresh_rate=0.5, objects=10, objects_right=4),
            threshold(0.1, [0.3, 0.5], refresh_rate=0.1, objects=10, objects_right=2),
            threshold(0.02, [0.6, 0.8], refresh_rate=0.9, objects=10, objects_right=5),
        )
    )
    assert table.column("policy") == ("threshold", "threshold", "threshold", "rcr")
    assert table.column("tau0") == (0.02, 0.03, 0.1, 0.03)
    assert table.column("images") == (2, 2, 2, 2)
    assert means(table, "fidelity") == pytest.approx([0.7, 0.6, 0.4, 0.75])
    assert table.column("refresh_rate") == tuple(map(pytest.approx, (0.9, 0.5, 0.1, 0.4)))
    assert table.column("reads") == tuple(map(pytest.approx, (144, 80, 16, 64)))
    assert table.column("objects_right") == tuple(map(pytest.approx, (0.5, 0.4, 0.2, 0.6)))
    assert "2 images" in table.note
    assert "rho 0.4" in table.note and "has to be tuned" not in table.note


def test_a_threshold_that_was_not_swept_is_no_table():
    assert thresholds_table(evidence(BACON, RCR, threshold(0.03, [0.5]))) is None
    table = thresholds_table(evidence(BACON, threshold(0.03, [0.5]), threshold(0.1, [0.3])))
    assert table.column("policy") == ("threshold", "threshold")  # without rcr
    assert table.column("fidelity") == (0.5, 0.3)  # one image: no interval


def test_budgets_by_policy():
    table = budgets_table(
        evidence(
            BACON,
            RCR,
            column("full", [1.0] * 3),
            column("bacon", [0.1, 0.3], {"select": 16}, refresh_rate=0.0),
            column("rcr", [0.5, 0.6], {"select": 16}, refresh_rate=0.45),
            column("rcr", [0.8, 1.0], {"select": 64}, refresh_rate=0.35),
        )
    )
    assert table.column("policy") == ("bacon", "rcr")
    assert table.column("images") == (2, 2)
    assert means(table, "fidelity_16") == pytest.approx([0.2, 0.55])
    assert means(table, "fidelity_32") == pytest.approx([0.3, 0.75])
    assert means(table, "fidelity_64") == [None, pytest.approx(0.9)]
    assert table.column("refresh_16") == (0.0, 0.45)
    assert table.column("refresh_64") == (None, 0.35)
    assert budgets_table(evidence(BACON, RCR)) is None


def test_target_rates():
    table = rates_table(
        evidence(
            BACON,
            RCR,
            column("rcr", [0.5, 0.6], {"rho": 0.1}, refresh_rate=0.12),
            column("rcr", [0.9, 1.0], {"rho": 0.8}, refresh_rate=0.79),
        )
    )
    assert table.column("rho") == (0.1, 0.4, 0.8)
    assert table.column("images") == (2, 2, 2)
    assert means(table, "fidelity") == pytest.approx([0.55, 0.75, 0.95])
    assert table.column("refresh_rate") == tuple(map(pytest.approx, (0.12, 0.4, 0.79)))
    assert rates_table(evidence(BACON, RCR)) is None


def test_budget_by_target_rate():
    crossed = [
        column("rcr", [0.6], {"select": 64}, objects=10, objects_right=3),
        column("rcr", [0.7], {"rho": 0.6}, objects=10, objects_right=7),
    ]
    assert grid_table(evidence(BACON, RCR, *crossed)) is None  # one at a time is no grid
    table = grid_table(
        evidence(
            BACON,
            RCR,
            *crossed,
            column("rcr", [0.4], {"select": 8}),  # at one rate only
            column("rcr", [0.9], {"select": 64, "rho": 0.6}, objects=10, objects_right=9),
            column("bacon", [0.3], {"select": 64}, objects=10, objects_right=1),
        )
    )
    assert table.column("select") == (32, 64)
    assert table.column("images") == (1, 1)
    assert table.column("fidelity_bacon") == (0.2, 0.3)
    assert table.column("fidelity_0.4") == (0.7, 0.6)
    assert table.column("fidelity_0.6") == (0.7, 0.9)
    assert table.column("objects_bacon") == (None, 0.1)
    assert table.column("objects_0.4") == (0.6, 0.3)
    assert table.column("objects_0.6") == (0.7, 0.9)


def many(policy: str, fidelity: float, settings: dict | None = None, count: int = 12, **numbers) -> list:
    return column(policy, [fidelity] * count, settings, **numbers)


def test_points_of_fidelity_against_reads():
    found = points(
        evidence(
            many("full", 1.0),
            many("bacon", 0.3, refresh_rate=0.0, count=30),
            many("bacon", 0.5, {"select": 64}, refresh_rate=0.0),
            many("oracle", 0.9, refresh_rate=0.0),
            many("threshold", 0.6, refresh_rate=0.5),
            many("rcr", 0.8, refresh_rate=0.4),
            many("rcr", 0.7, {"rho": 0.1}, refresh_rate=0.1),
            many("rcr", 0.95, {"rho": 0.6, "select": 64}, refresh_rate=0.5),
            many("rcr", 0.8, {"rank": 4}, refresh_rate=0.4),  # buys nothing with reads
            many("exact", 1.0, refresh_rate=1.0),
        )
    )
    told = [(one.policy, one.label, one.settings, one.reads, one.fidelity.mean) for one in found]
    assert told == [
        ("bacon", "select 32", {}, 0, pytest.approx(0.3)),
        ("bacon", "select 64", {"select": 64}, 0, pytest.approx(0.5)),
        ("oracle", "select 32", {}, 0, pytest.approx(0.9)),
        ("exact", "select 32", {}, 1056, 1.0),
        ("threshold", "tau0 0.03", {}, pytest.approx(80), pytest.approx(0.6)),
        ("rcr", "rho 0.1", {"rho": 0.1}, pytest.approx(16), pytest.approx(0.7)),
        ("rcr", "rho 0.4", {}, pytest.approx(64), pytest.approx(0.8)),
        ("rcr", "select 64, rho 0.6", {"select": 64, "rho": 0.6}, pytest.approx(160), pytest.approx(0.95)),
    ]
    assert {one.images for one in found} == {12}
    ahead = [(one.policy, one.label) for one in frontier(found)]
    assert ahead == [
        ("bacon", "select 64"),
        ("rcr", "rho 0.1"),
        ("rcr", "rho 0.4"),
        ("rcr", "select 64, rho 0.6"),
        ("exact", "select 32"),
    ]


def test_points_stand_on_their_own_images_where_few_are_common():
    found = points(evidence(many("bacon", 0.3, count=30), many("rcr", 0.8, refresh_rate=0.4, count=9)))
    assert [one.images for one in found] == [30, 9]
    assert frontier(found) == []
    found = points(evidence(many("bacon", 0.3, count=30), many("rcr", 0.8, refresh_rate=0.4, count=10)))
    assert [one.images for one in found] == [10, 10]
    assert frontier(found) == found


def test_points_of_as_many_but_other_images_have_no_frontier():
    others = [made("rcr", 100 + at, fidelity=0.8, refresh_rate=0.4) for at in range(12)]
    assert frontier(points(evidence(many("bacon", 0.3), others))) == []


def test_points_that_tie_share_the_frontier_and_more_reads_for_as_much_do_not():
    found = points(
        evidence(
            many("quest", 0.7, refresh_rate=1.0),
            many("arkvale", 0.7, refresh_rate=1.0),
            many("infinigen", 0.6, refresh_rate=1.0),
            many("exact", 0.7, refresh_rate=1.0),
        )
    )
    assert [one.policy for one in frontier(found)] == ["quest", "arkvale"]


def test_a_run_without_decisions_has_no_reads_and_no_point():
    assert points(evidence(many("rcr", 1.0))) == []
    assert pareto_table(evidence(many("rcr", 1.0), many("full", 1.0))) is None


def test_the_pareto_table_says_what_is_on_the_frontier():
    found = evidence(
        many("oracle", 0.9, refresh_rate=0.0),
        many("bacon", 0.3, refresh_rate=0.0),
        many("quest", 0.2, refresh_rate=1.0),
        many("rcr", 0.8, refresh_rate=0.4),
    )
    table = pareto_table(found)
    assert table.column("policy") == ("bacon", "oracle", "rcr", "quest")
    assert table.column("frontier") == ("yes", None, "yes", "no")
    few = pareto_table(evidence(many("bacon", 0.3), many("rcr", 0.8, refresh_rate=0.4, count=1)))
    assert few.column("fidelity")[1] == 0.8  # one image
    assert "frontier" not in [one.id for one in few.columns]


def test_the_detector_over_ranks():
    def diagnosed(rank: int, **numbers) -> dict:
        return {"settings": {"rank": rank, "diagnostics": True}, "fidelity": 0.5, **numbers}

    table = detector_table(
        evidence(
            BACON,
            RCR,  # without diagnostics
            [
                made(
                    "rcr", 0, **diagnosed(8, recall=0.8, mean_drift=0.3, drift_exact=0.35, refresh_rate=0.5)
                ),
                made(
                    "rcr", 1, **diagnosed(8, recall=0.9, mean_drift=0.5, drift_exact=0.56, refresh_rate=0.4)
                ),
                made("rcr", 2, **diagnosed(8, recall=0.1, mean_drift=0.5, drift_exact=0.9)),
            ],
            [
                made("rcr", 0, **diagnosed(16, recall=0.9, mean_drift=0.34, drift_exact=0.35)),
                made("rcr", 1, **diagnosed(16, recall=1.0, mean_drift=0.54, drift_exact=0.57)),
            ],
        )
    )
    assert table.column("rank") == (8, 16)
    assert table.column("images") == (2, 2)
    assert means(table, "recall") == pytest.approx([0.85, 0.95])
    assert means(table, "drift_estimate") == pytest.approx([0.4, 0.44])
    assert means(table, "drift_exact") == pytest.approx([0.455, 0.46])
    assert table.column("refresh_rate") == (pytest.approx(0.45), None)
    assert means(table, "bias") == pytest.approx([-0.055, -0.02])
    assert means(table, "fidelity") == pytest.approx([0.5, 0.5])
    assert "top 32 among 128" in table.note
    assert detector_table(evidence(BACON, RCR)) is None
