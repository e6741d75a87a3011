"""The tables read back as the trace's own values, and no text in them is a formula to a spreadsheet."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest

from rcr_core.trace import Trace
from tests.core.trace_samples import DIAGNOSTICS, small_trace
from tests.viz.samples import changed, full_trace, made_trace, naive_decisions, one_shot_trace
from viz.tables import TABLES, plain


def rows(name: str, trace: Trace) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(TABLES[name](trace), newline="")))


def test_a_step_reads_back():
    trace = made_trace()
    found = rows("steps", trace)
    assert [row["step"] for row in found] == [str(step) for step in range(40)]
    for step, row in enumerate(found):
        assert int(row["token_id"]) == trace.tokens[step]
        assert row["text"] == f" word{step}"
        assert np.float32(row["logprob"]) == trace.logprob[step]
        assert float(row["seconds"]) == (0.5 if step == 0 else 0.25 + step / 8)
        for kind, name in enumerate(("selected_visual", "selected_text", "window", "generated")):
            mean = sum(float(trace.mass[step, layer, kind]) for layer in (1, 2, 3)) / 3
            assert float(row[f"mass_{name}"]) == pytest.approx(mean, abs=1e-7)
        decided = [one for one in naive_decisions(trace) if one[0] == step]
        if not decided:
            assert step == 0
            assert row["refresh_share"] == row["mean_drift"] == row["tau"] == ""
            continue
        assert float(row["refresh_share"]) == sum(int(trace.fire[one]) for one in decided) / 2
        drifts = [float(trace.drift[one]) for one in decided]
        assert float(row["mean_drift"]) == pytest.approx(sum(drifts) / 2)
        assert np.float32(row["tau"]) == trace.tau[decided[-1]]


def test_the_steps_add_up_to_what_the_trace_says_of_the_run():
    trace = made_trace()
    table = pd.read_csv(io.StringIO(TABLES["steps"](trace)))
    assert table.refresh_share.mean() == pytest.approx(trace.refresh_rate)
    assert table.mean_drift.mean() == pytest.approx(trace.mean_drift)
    assert table.tau.iloc[-1] == pytest.approx(trace.tau_end)


def test_a_layer_step_reads_back():
    trace = made_trace()
    found = rows("layers", trace)
    assert [(int(row["step"]), int(row["layer"])) for row in found] == [
        (step, layer) for step in range(1, 40) for layer in range(4)
    ]
    decided = naive_decisions(trace)
    for row in found:
        at = int(row["step"]), int(row["layer"])
        numbers = [row[name] for name in ("drift", "tau", "fire", "changed_head_0", "changed_head_1")]
        if at not in decided:
            assert row["state"] == ("passed through" if at[1] == 0 else "keeps all")
            assert numbers == [""] * 5
            continue
        assert row["state"] == "decides"
        assert np.float32(numbers[0]) == trace.drift[at]
        assert np.float32(numbers[1]) == trace.tau[at]
        assert int(numbers[2]) == trace.fire[at]
        now, before = trace.selection(*at), trace.selection(at[0] - 1, at[1])
        for head in range(2):
            assert int(numbers[3 + head]) == len(set(now[head]) - set(before[head]))


def test_diagnostics_stand_there_where_the_run_has_them():
    assert "drift_exact" not in rows("layers", small_trace())[0]
    row = rows("layers", small_trace(**DIAGNOSTICS))[1]
    assert (row["layer"], row["drift_exact"], row["recall"]) == ("1", "0.1", "0.9")


def test_without_a_threshold_tau_is_empty():
    trace = one_shot_trace()
    assert {row["tau"] for row in rows("layers", trace)} == {""}
    assert {row["tau"] for row in rows("steps", trace)} == {""}
    assert {row["changed_head_0"] for row in rows("layers", trace) if row["state"] == "decides"} == {"0"}


def test_the_selections_can_be_replayed():
    trace = made_trace()
    found = rows("selections", trace)
    held = {(layer, head): set() for layer in (2, 3) for head in (0, 1)}
    at = 0
    for step in range(40):
        while at < len(found) and int(found[at]["step"]) == step:
            key = int(found[at]["layer"]), int(found[at]["kv_head"])
            entered, left = (
                [int(index) for index in found[at][name].split()] for name in ("entered", "left")
            )
            assert entered == sorted(entered) and left == sorted(left)
            assert not held[key] & set(entered) and set(left) <= held[key]
            held[key] = (held[key] | set(entered)) - set(left)
            at += 1
        for layer, head in held:
            assert held[layer, head] == set(trace.selection(step, layer)[head].tolist())
    assert at == len(found) > 8


def test_selections_has_a_row_only_where_one_changed():
    trace = made_trace()
    found = {(int(row["step"]), int(row["layer"]), int(row["kv_head"])) for row in rows("selections", trace)}
    assert len(found) == len(rows("selections", trace))
    for step, layer in naive_decisions(trace):
        now, before = trace.selection(step, layer), trace.selection(step - 1, layer)
        for head in range(2):
            assert ((step, layer, head) in found) == (set(now[head]) != set(before[head]))


def test_one_shot_has_only_the_first_selections():
    trace = one_shot_trace()
    found = rows("selections", trace)
    assert [(row["step"], row["layer"], row["kv_head"], row["left"]) for row in found] == [
        ("0", layer, head, "") for layer in "23" for head in "01"
    ]
    assert found[0]["entered"] == " ".join(str(index) for index in trace.selection(0, 2)[0])


def test_a_layer_that_evicts_again_is_compared_with_what_it_had():
    trace = made_trace(4)
    row = trace.selected_row.copy()
    row[1:3, 2] = -1
    row[3, 2] = row[0, 2]
    found = rows("selections", changed(trace, selected_row=row))
    assert {line["step"] for line in found if line["layer"] == "2"} == {"0"}


def test_a_selection_of_a_layer_that_is_passed_through_counts_for_nothing():
    """A file may name one; the trace does not count it as a decision either."""
    trace = made_trace(6)
    row = trace.selected_row.copy()
    row[:, 0] = row[:, 2]
    odd = changed(trace, selected_row=row)
    assert odd.refresh_rate == trace.refresh_rate
    for name in TABLES:
        assert TABLES[name](odd) == TABLES[name](trace)


def test_tau_of_a_step_is_that_of_the_last_layer_that_decides():
    trace = made_trace(6)
    row = trace.selected_row.copy()
    row[:, 3] = -1
    odd = changed(trace, selected_row=row)
    assert np.float32(rows("steps", odd)[-1]["tau"]) == trace.tau[5, 2] == np.float32(odd.tau_end)


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "\n=1",
    "'=1",
    "''-",
    "＝1",
    "＋",
    "－",
    "＠",
]
HARMLESS = [
    "",
    " word",
    "'s",
    "'",
    "a=b",
    "1-2",
    "\n",
    " ",
    "“-”",
    '"=1"',
    ",",
    "a,b\nc",
    "'\"",
    "猫",
    "#",
    "|x",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_would_be_a_formula_gets_an_apostrophe(text):
    assert plain(text) == "'" + text


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays_as_it_is(text):
    assert plain(text) == text
    assert plain(None) is None


def test_texts_read_back_through_both_readers():
    texts = [*FORMULAS, *HARMLESS, None]
    trace = made_trace(len(texts), token_text=texts)
    found = [row["text"] for row in rows("steps", trace)]
    assert found == ["'" + text for text in FORMULAS] + HARMLESS + [""]
    table = pd.read_csv(io.StringIO(TABLES["steps"](trace), newline=""), keep_default_na=False)
    assert list(table.text) == found


def test_no_two_texts_share_a_cell():
    """The apostrophe can be taken off again: nothing else in a cell looks like one that was put there."""
    texts = FORMULAS + HARMLESS + ["'" + text for text in FORMULAS + HARMLESS]
    assert len({plain(text) for text in texts}) == len(set(texts))


@pytest.mark.parametrize("name", TABLES)
def test_a_run_without_steps_is_a_table_without_rows(name):
    text = TABLES[name](made_trace(0, timings={"prefill": 0, "steps": []}))
    assert text.count("\r\n") == 1 and text.endswith("\r\n")


def test_a_run_of_the_prefill_alone():
    trace = made_trace(1)
    assert len(rows("steps", trace)) == 1
    assert rows("layers", trace) == []
    assert {row["step"] for row in rows("selections", trace)} == {"0"}


def test_a_run_that_keeps_everything():
    trace = full_trace()
    assert rows("selections", trace) == []
    assert {row["state"] for row in rows("layers", trace)} == {"passed through", "keeps all"}
    assert {row["refresh_share"] for row in rows("steps", trace)} == {""}


def test_a_run_whose_layers_are_all_passed_through():
    trace = full_trace(managed=[False] * 4)
    assert {row["mass_window"] for row in rows("steps", trace)} == {""}
    assert {row["state"] for row in rows("layers", trace)} == {"passed through"}


def test_seconds_that_were_not_recorded_are_empty():
    found = rows("steps", made_trace(3, timings={"prefill": 0.5, "steps": []}))
    assert [row["seconds"] for row in found] == ["0.5", "", ""]
