"""The tables of the main comparison, against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from rcr_core.findings.confounds import length_confound
from rcr_core.findings.controller import controller_table
from rcr_core.findings.correlations import correlations_table
from rcr_core.findings.fidelity import fidelity_table
from rcr_core.findings.layers import layers_table
from rcr_core.findings.terciles import terciles_table
from tests.core.findings_samples import column, evidence, made, mean, row_of

RCR = [
    made("rcr", 0, fidelity=0.6, refresh_rate=0.3, mean_drift=0.2, diverges_at=4, objects=4, objects_right=1),
    made("rcr", 1, fidelity=0.8, refresh_rate=0.5, mean_drift=0.3, diverges_at=9, objects=8, objects_right=5),
    made(
        "rcr", 2, fidelity=1.0, refresh_rate=0.4, mean_drift=0.1, diverges_at=-1, objects=2, objects_right=2
    ),
]
FULL = column("full", [1.0, 1.0, 1.0], diverges_at=-1)
BACON = column("bacon", [0.2, 0.4, 0.9], refresh_rate=0.0)
THRESHOLD = column("threshold", [0.5, 0.6, 0.9], refresh_rate=0.25)[1:]


def test_fidelity_of_each_policy_and_paired_differences():
    table = fidelity_table(evidence(RCR, FULL, BACON, THRESHOLD))
    assert table.column("policy") == ("full", "bacon", "threshold", "rcr")
    rcr = row_of(table, "rcr")
    assert rcr["images"] == 3
    assert rcr["fidelity"].mean == pytest.approx(0.8)
    assert 0.6 <= rcr["fidelity"].low < 0.8 < rcr["fidelity"].high <= 1.0
    assert rcr["over_bacon"].mean == pytest.approx((0.4 + 0.4 + 0.1) / 3)
    assert rcr["over_bacon"].count == 3
    assert rcr["over_threshold"].mean == pytest.approx((0.2 + 0.1) / 2)  # the images that both have
    assert rcr["over_threshold"].count == 2
    assert row_of(table, "bacon")["over_bacon"] is None
    assert row_of(table, "bacon")["over_threshold"].mean == pytest.approx(-0.1)


def test_means_are_over_common_images_or_say_that_they_are_not():
    table = fidelity_table(evidence(RCR, FULL, BACON, THRESHOLD))
    assert "different images" in table.note
    uneven = fidelity_table(
        evidence(column("rcr", [0.5] * 12, steps=9), column("bacon", [0.1] * 10 + [0.9] * 20))
    )
    assert uneven.column("images") == (12, 12)
    assert [mean(cell) for cell in uneven.column("fidelity")] == pytest.approx([2.8 / 12, 0.5])
    assert "Means over 12 images that all policies have, of 30." in uneven.note
    even = fidelity_table(evidence(RCR, FULL, BACON))
    assert "Means over 3 images." in even.note


def test_outputs_that_the_prefill_chose_are_no_proof_of_a_selection():
    def note(steps: int) -> str:
        return fidelity_table(evidence(column("rcr", [1.0] * 2, steps=steps), FULL[:2])).note

    assert "say nothing" not in note(2)  # the uncompressed run has 5 tokens
    short = [column(name, [1.0] * 2, steps=2) for name in ("full", "rcr")]
    assert (
        "only 1 token of an output (mean) came after the selection" in fidelity_table(evidence(*short)).note
    )


def test_other_numbers_of_the_comparison():
    table = fidelity_table(evidence(RCR, FULL, BACON, THRESHOLD))
    rcr = row_of(table, "rcr")
    assert rcr["refresh_rate"] == pytest.approx(0.4)
    assert rcr["mean_drift"] == pytest.approx(0.2)
    assert rcr["reads"] == pytest.approx(64)  # (4 x 32 + 32) x 0.4
    assert row_of(table, "threshold")["reads"] == pytest.approx(40)
    assert row_of(table, "bacon")["reads"] == 0
    assert rcr["same_words"] == pytest.approx(1 / 3)
    assert rcr["divergence"] == 6.5  # of those that diverge
    assert rcr["objects_right"] == pytest.approx(8 / 14)  # of objects, not a mean over images


def test_columns_without_a_value_are_left_out():
    table = fidelity_table(evidence(RCR, FULL))
    ids = [one.id for one in table.columns]
    assert not {"over_bacon", "over_threshold", "over_exact", "accuracy"} & set(ids)
    assert row_of(table, "full")["same_words"] is None


def test_one_image_has_means_without_intervals():
    table = fidelity_table(evidence(RCR[:1], BACON[:1]))
    assert row_of(table, "rcr")["fidelity"] == 0.6
    assert row_of(table, "rcr")["over_bacon"] == pytest.approx(0.4)


def test_rows_without_a_reference_still_say_what_they_did():
    table = fidelity_table(evidence([made("rcr", 0, refresh_rate=0.5)]))
    assert row_of(table, "rcr") == {"policy": "rcr", "images": 1, "refresh_rate": 0.5, "reads": 80}


def test_of_merged_studies_the_main_comparison_has_one_base():
    other = column("rcr", [0.1] * 3, {"select": 64}, refresh_rate=0.4)
    table = fidelity_table(evidence(RCR, BACON, other))
    assert row_of(table, "rcr")["fidelity"].mean == pytest.approx(0.8)
    assert "select 32" in table.note


def test_accuracy_of_short_answers():
    table = fidelity_table(evidence([made("full", 0, accuracy=1.0), made("full", 1, accuracy=0.3)]))
    assert row_of(table, "full")["accuracy"].mean == pytest.approx(0.65)


def steered(update: str, sample: int, rate: float, updates: int, **numbers):
    """A row whose tau_end is where the identity puts it: tau0 exp(gain x updates x (rate - rho))."""
    tau_end = 0.03 * math.exp(0.05 * updates * (rate - 0.4))
    return made(
        "rcr", sample, {"update": update}, fidelity=0.5, refresh_rate=rate, tau_end=tau_end, **numbers
    )


def test_rate_control_with_both_updates_on_common_images():
    table = controller_table(
        evidence(
            column("bacon", [0.5] * 3),
            [
                steered("layer", 0, 0.42, 100, identity_rate=0.42, settles_at=3),
                steered("layer", 1, 0.38, 100, identity_rate=0.39, settles_at=7),
                steered("layer", 2, 0.9, 100, identity_rate=0.9),
            ],
            [
                steered("step", 0, 0.5, 20, identity_rate=0.5, settles_at=None),
                steered("step", 1, 0.6, 20, identity_rate=0.55, settles_at=9),
            ],
        )
    )
    layer, step = row_of(table, "layer"), row_of(table, "step")
    assert layer["images"] == step["images"] == 2
    assert layer["refresh_rate"] == pytest.approx(0.4)
    assert (layer["lowest_rate"], layer["highest_rate"]) == (0.38, 0.42)
    assert layer["identity_rate"] == pytest.approx(0.405)
    assert layer["identity_gap"] == pytest.approx(0.01)
    assert step["identity_gap"] == pytest.approx(0.05)
    low, high = 0.03 * math.exp(-0.1), 0.03 * math.exp(0.1)
    assert layer["tau_end"] == pytest.approx((low + high) / 2)
    assert layer["tau_low"] == pytest.approx(low + 0.05 * (high - low))
    assert layer["tau_high"] == pytest.approx(low + 0.95 * (high - low))
    assert (layer["rho"], layer["tau0"]) == (0.4, 0.03)
    assert (layer["settles_at"], layer["settles"]) == (5, 1)
    assert (step["settles_at"], step["settles"]) == (9, 0.5)


def test_the_identity_says_which_tau_it_takes():
    table = controller_table(evidence([steered("layer", 0, 0.42, 100, identity_rate=0.42)], BACON))
    (told,) = (one.help for one in table.columns if one.id == "identity_rate")
    assert "(ln(tau_end / tau0) / gain + f_last − rho) / updates" in told
    assert "the threshold that the last decision used" in told


def test_no_rate_control_without_rcr():
    assert controller_table(evidence(BACON, THRESHOLD)) is None


def test_layers_and_all_of_them():
    table = layers_table(
        evidence(
            [
                made("full", 0, {"diagnostics": True}, staleness=[None, 0.2, 0.4]),
                made("full", 1, {"diagnostics": True}, staleness=[None, 0.4, 0.8]),
            ],
            [
                made("rcr", 0, refresh_rate=0.5, refresh_by_layer=[None, 0.3, 0.7]),
                made("rcr", 1, refresh_rate=0.3, refresh_by_layer=[None, 0.0, 0.6]),
            ],
        )
    )
    assert [one.id for one in table.columns] == ["layer", "staleness", "rcr"]
    assert table.column("layer") == ("0", "1", "2", "all layers")
    assert table.column("staleness") == (None, *map(pytest.approx, (0.3, 0.6, 0.45)))
    assert table.column("rcr") == (None, *map(pytest.approx, (0.15, 0.65, 0.4)))


def test_no_layers_without_staleness_and_triggers():
    assert layers_table(evidence(FULL, BACON)) is None


DRIFTS = [0.5, 0.1, 0.3, 0.2, 0.6, 0.4]  # thirds: images 1 3, 2 5, 0 4


def drifting(policy: str, fidelities: list[float], rates: list[float]):
    return [
        made(policy, at, fidelity=fidelity, mean_drift=drift, refresh_rate=rate)
        for at, (fidelity, drift, rate) in enumerate(zip(fidelities, DRIFTS, rates, strict=True))
    ]


def test_thirds_by_drift_under_rcr():
    rcr = drifting("rcr", [0.5, 0.9, 0.7, 0.8, 0.4, 0.6], [0.45, 0.35, 0.4, 0.36, 0.46, 0.41])
    # Drift under the fixed threshold would sort the images the other way round.
    fixed = [
        made("threshold", at, fidelity=f, mean_drift=1 - d, refresh_rate=r)
        for at, (f, d, r) in enumerate(
            zip([0.5, 0.3, 0.4, 0.2, 0.6, 0.5], DRIFTS, [0.9, 0.01, 0.5, 0.03, 0.8, 0.6], strict=True)
        )
    ]
    table = terciles_table(evidence(rcr, fixed))
    assert table.column("third") == ("low", "middle", "high")
    assert table.column("images") == (2, 2, 2)
    assert table.column("lowest_drift") == (0.1, 0.3, 0.5)
    assert table.column("highest_drift") == (0.2, 0.4, 0.6)
    assert [mean(cell) for cell in table.column("rcr")] == pytest.approx([0.85, 0.65, 0.45])
    assert [mean(cell) for cell in table.column("threshold")] == pytest.approx([0.25, 0.45, 0.55])
    assert table.column("rate_threshold") == tuple(map(pytest.approx, (0.02, 0.55, 0.85)))
    assert table.column("rate_rcr") == tuple(map(pytest.approx, (0.355, 0.405, 0.455)))
    assert "exact" not in [one.id for one in table.columns]


def lengthy(steps: list[int]) -> list:
    fidelities = [0.5, 0.9, 0.7, 0.8, 0.4, 0.6]
    return [
        made("rcr", at, fidelity=fidelity, mean_drift=drift, refresh_rate=0.4, steps=count)
        for at, (fidelity, drift, count) in enumerate(zip(fidelities, DRIFTS, steps, strict=True))
    ]


# From the lowest drift to the highest: images 1 3 2 5 0 4.
FALLING = [20, 60, 40, 50, 10, 30]


def test_thirds_tell_the_lengths_of_rcr_and_of_the_uncompressed_run():
    full = [made("full", at, fidelity=1.0, steps=steps) for at, steps in enumerate([7, 1, 3, 5, 9, 11])]
    table = terciles_table(evidence(lengthy(FALLING), full))
    assert table.column("steps_rcr") == (55, 35, 15)
    assert table.column("steps_full") == (3, 7, 8)
    assert "steps_full" not in [one.id for one in terciles_table(evidence(lengthy(FALLING))).columns]


def test_length_that_goes_with_drift_is_named_and_no_other():
    infinigen = column("infinigen", [0.6, 1.0, 0.8, 0.9, 0.65, 0.7])
    # Spearman's -1 over six images is 2.2 standard deviations of chance, 1 - 6 x 68 / 210 = -0.94 is 2.1.
    for steps, told in ((FALLING, "is −1.00"), ([10, 60, 40, 50, 20, 30], "is −0.94")):
        found = evidence(lengthy(steps), infinigen)
        for table in (terciles_table(found), correlations_table(found)):
            assert "Drift and length are not apart here" in table.note
            assert told in table.note
    for steps in ([5] * 6, [30, 20, 60, 10, 50, 40]):
        found = evidence(lengthy(steps), infinigen)
        for table in (terciles_table(found), correlations_table(found)):
            assert "Drift and length" not in table.note
    assert length_confound({}) == ""
    assert length_confound({str(at): row for at, row in enumerate(lengthy(FALLING)[:2])}) == ""


def test_the_gap_with_the_length_of_rcr():
    infinigen = column("infinigen", [0.6, 1.0, 0.8, 0.9, 0.65, 0.7])
    rcr = [
        made("rcr", at, fidelity=0.5, mean_drift=drift, steps=steps)
        for at, (drift, steps) in enumerate(zip(DRIFTS, [50, 10, 30, 20, 60, 40], strict=True))
    ]
    (row,) = correlations_table(evidence(rcr, infinigen)).rows
    assert row[2:] == (pytest.approx(1 - 6 * 68 / 210),) * 2  # the lengths rank as drift does


def test_thirds_of_one_image_each_have_no_interval_and_two_images_no_thirds():
    rcr = drifting("rcr", [0.5, 0.9, 0.7, 0.8, 0.4, 0.6], [0.4] * 6)
    table = terciles_table(evidence(rcr[:3]))
    assert table.column("rcr") == (0.9, 0.7, 0.5)
    assert terciles_table(evidence(rcr[:2])) is None
    assert terciles_table(evidence(BACON)) is None


def test_the_gap_to_infinigen_by_rank():
    rcr = drifting("rcr", [0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [0.4] * 6)
    # Ranks of drift 5 1 3 2 6 4, of the gap 1 6 4 5 2 3.
    infinigen = column("infinigen", [0.6, 1.0, 0.8, 0.9, 0.65, 0.7])
    full = [made("full", at, fidelity=1.0, steps=steps) for at, steps in enumerate([10, 60, 40, 50, 20, 30])]
    table = correlations_table(evidence(rcr, infinigen, full))
    ((gap, images, drift, length),) = table.rows  # RCR's texts are all of one length
    assert (gap, images) == ("InfiniGen − RCR", 6)
    # d = 5-1, 1-6, 3-4, 2-5, 6-2, 4-3 -> 16 + 25 + 1 + 9 + 16 + 1 = 68; 1 - 6 x 68 / (6 x 35)
    assert drift == pytest.approx(1 - 6 * 68 / 210)
    # lengths rank 1 6 4 5 2 3, as the gap does
    assert length == pytest.approx(1.0)


def test_no_correlation_where_there_is_none():
    rcr = drifting("rcr", [0.5] * 6, [0.4] * 6)
    assert correlations_table(evidence(rcr, column("infinigen", [0.7] * 6))) is None
    assert correlations_table(evidence(rcr)) is None
    table = correlations_table(evidence(rcr, column("infinigen", [0.6, 1.0, 0.8, 0.9, 0.65, 0.7])))
    assert "length" not in [one.id for one in table.columns]  # without the uncompressed runs
