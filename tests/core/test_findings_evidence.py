"""Rows by policy and setting, and which images can be compared."""

from __future__ import annotations

from rcr_core.findings import evidence_of
from rcr_core.findings.evidence import ENOUGH, in_common, on_common, uneven
from tests.core.findings_samples import column, evidence, made


def test_the_base_is_what_most_policies_were_run_at():
    found = evidence(
        column("rcr", [0.5] * 9, {"rho": 0.6}),  # more rows, but one policy
        column("rcr", [0.5]),
        column("bacon", [0.5]),
    )
    assert found.base["rho"] == 0.4
    assert list(found.of("rcr")) == ["0"]
    assert len(found.of("rcr", rho=0.6)) == 9
    assert found.of("quest") == {}
    assert found.of("rcr", rho=0.7) == {}


def test_of_two_bases_with_as_many_policies_the_one_with_more_rows_counts():
    found = evidence(
        column("rcr", [0.5], {"select": 64}),
        column("bacon", [0.5], {"select": 64}),
        column("rcr", [0.5] * 3),
        column("bacon", [0.5] * 3),
    )
    assert found.base["select"] == 32
    assert found.policies == ["bacon", "rcr"]


def test_diagnostics_change_no_setting_and_their_row_is_taken():
    plain, told = (
        made("rcr", 1, fidelity=0.5),
        made("rcr", 1, {"diagnostics": True}, fidelity=0.5, recall=0.9),
    )
    for rows in ([plain, told], [told, plain]):
        found = evidence(rows)
        assert "diagnostics" not in found.base
        assert found.of("rcr") == {"1": told}


def test_varied_goes_up_and_keeps_the_other_settings():
    found = evidence(
        column("bacon", [0.5]),
        column("rcr", [0.5], {"rho": 0.8}),
        column("rcr", [0.5], {"rho": 0.1}),
        column("rcr", [0.5]),
        column("rcr", [0.5], {"rho": 0.2, "select": 64}),
    )
    assert list(found.varied("rcr", "rho")) == [(0.1,), (0.4,), (0.8,)]
    assert list(found.varied("rcr", "select", "rho")) == [(32, 0.1), (32, 0.4), (32, 0.8), (64, 0.2)]


def test_what_is_handed_out_can_be_changed_without_harm():
    found = evidence(column("rcr", [0.5, 0.6]))
    found.of("rcr").clear()
    assert len(found.of("rcr")) == 2


def test_policies_have_one_order_and_unknown_ones_come_last():
    found = evidence(*(column(name, [0.5]) for name in ("other", "infinigen", "rcr", "full", "bacon")))
    assert found.policies == ["full", "bacon", "rcr", "infinigen", "other"]


def test_models_data_sets_and_lengths_stand_apart():
    rows = [
        made("rcr", 1),
        made("rcr", 1, model="b"),
        made("rcr", 1, weights="b"),
        made("rcr", 1, data="b"),
        made("rcr", 1, max_new_tokens=9),
    ]
    assert [len(found.rows) for found in evidence_of(rows)] == [1, 1, 1, 1, 1]
    assert evidence_of([]) == []


def test_prompts_of_one_sample_are_never_mixed():
    found = evidence(
        [made("bacon", 1, prompt="What?"), made("bacon", 2), made("rcr", 1, prompt="Where?"), made("rcr", 2)]
    )
    assert len(found.of("rcr")) == 2
    assert in_common(found.of("bacon"), found.of("rcr")) == ["2"]


def test_the_base_for_people_names_what_is_no_default():
    found = evidence(column("rcr", [0.5], {"page": 8, "centre": True}))
    assert found.base_text == "select 32, window 32, tau0 0.03, rho 0.4, centre True, page 8"


def images(*names) -> dict:
    return {str(name): made("rcr", name) for name in names}


def test_columns_are_cut_to_what_they_share():
    found = on_common({"a": images(*range(200)), "b": images(*range(100, 150)), "c": images(*range(90, 150))})
    assert {which: len(rows) for which, rows in found.items()} == {"a": 50, "b": 50, "c": 50}


def test_a_short_sweep_cuts_all_that_is_compared_with_it():
    """Seven settings on four images beside the main comparison on 200: the sweep is on four."""
    found = on_common({"base": images(*range(200)), **{str(n): images(0, 1, 2, 3) for n in range(7)}})
    assert {len(rows) for rows in found.values()} == {4}
    assert len(found) == 8


def test_a_stray_column_is_left_out():
    columns = {str(n): images(*range(50)) for n in range(8)}
    assert set(on_common({**columns, "stray": images(0)})) == set(columns)
    assert set(on_common({**columns, "elsewhere": images(*range(900, 999))})) == set(columns)
    assert len(on_common(columns)["0"]) == 50 > ENOUGH


def test_nothing_has_nothing_in_common():
    assert on_common({}) == {}
    assert on_common({"a": {}, "b": images(1)}) == {"b": images(1)}


def main_of(**counts) -> dict[str, list[str]]:
    found = evidence(*(column(policy, [0.5] * count) for policy, count in counts.items()))
    return {policy: list(rows) for policy, rows in found.main().items()}


def test_the_main_comparison_is_on_common_images_where_they_are_enough():
    ten = [str(at) for at in range(ENOUGH)]
    assert main_of(bacon=30, rcr=12, full=10) == {"full": ten, "bacon": ten, "rcr": ten}
    assert {name: len(rows) for name, rows in main_of(bacon=30, rcr=9).items()} == {"bacon": 30, "rcr": 9}
    assert {name: len(rows) for name, rows in main_of(bacon=2, rcr=2).items()} == {"bacon": 2, "rcr": 2}


def test_columns_of_other_images_are_uneven_also_where_they_are_as_many():
    assert not uneven({"a": images(1, 2), "b": images(2, 1)})
    assert uneven({"a": images(1, 2), "b": images(1, 3)})
    assert not uneven({})
