"""VQA accuracy, against values worked by hand."""

from __future__ import annotations

import pytest

from rcr_core.study.vqa import normalised, vqa_accuracy


@pytest.mark.parametrize(
    ("agreeing", "expected"),
    [
        (0, 0.0),
        (1, 0.3),  # the one who said it finds nobody else; the other nine find one of three: 9 x 1/3 / 10
        (2, 0.6),  # (2 x 1/3 + 8 x 2/3) / 10
        (3, 0.9),  # (3 x 2/3 + 7 x 1) / 10
        (4, 1.0),
        (10, 1.0),
    ],
)
def test_accuracy_is_the_leave_one_out_mean_over_ten_people(agreeing, expected):
    others = [f"other {number}" for number in "bcdefghijk"]
    given = ["stop"] * agreeing + others[agreeing:]
    assert vqa_accuracy("Stop.", given) == pytest.approx(expected)


def test_people_who_differ_only_in_writing_agree():
    given = ["Coca-Cola", "coca cola", "The Coca-Cola.", "coca cola!"] + ["pepsi"] * 6
    assert vqa_accuracy("COCA COLA", given) == 1.0
    assert vqa_accuracy("cocacola", given) == 0.0


def test_with_three_answers_or_fewer_any_that_is_the_same_counts():
    assert vqa_accuracy("Yes", ["yes"]) == 1.0
    assert vqa_accuracy("no", ["yes"]) == 0.0
    assert vqa_accuracy("b", ["a b", "c", "d"]) == 1.0
    assert vqa_accuracy("", []) == 0.0
    # Of four, three are left: two of the four said it, so (2 x 1/3 + 2 x 2/3) / 4.
    assert vqa_accuracy("b", ["b", "b", "c", "d"]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("  Two  Dogs ", "2 dogs"),
        ("none", "0"),
        ("eleven", "eleven"),
        ("the end of a road", "end of road"),
        ("dont", "don't"),
        ("don't", "don't"),
        ("couldnt've", "couldn't've"),
        ("couldn'tve", "couldn't've"),
        ("twas", "'twas"),
        ("dog's", "dog 's"),
        ("red, white, and blue?", "red white and blue"),
        ("1,000", "1000"),
        ("3.5", "3.5"),
        (".5", ".5"),
        ("5.", "5"),
        ("U.S.A.", "usa"),
        ("t-shirt", "t shirt"),
        (
            "t-shirt -",
            "tshirt",
        ),  # a mark that stands at an end of a word anywhere goes without leaving a space
        ("(left)", "left"),
        ("either/or", "either or"),
        ("$5", "$5"),
        ("10:30\nam", "10:30 am"),
        ("the", ""),
    ],
)
def test_normalisation(answer, expected):
    assert normalised(answer) == expected
