"""Policies look and are called the same everywhere, and their colours can be seen on both grounds."""

from __future__ import annotations

import numpy as np
import pytest

from rcr_core.findings import Column
from rcr_core.policies import POLICIES
from tests.viz.test_palette import DARK, LIGHT, contrast
from viz.study.labels import LINE, Box, placed, spread
from viz.study.looks import LOOKS, look_of
from viz.study.names import TITLES, head_of, short_title, title_of


def test_every_policy_has_the_title_of_the_registry_and_a_look_of_its_own():
    assert {name: policy.title for name, policy in POLICIES.items()} == TITLES
    assert set(LOOKS) == set(POLICIES)
    assert len({look.colour for look in LOOKS.values()}) == len(POLICIES)
    assert {name for name, look in LOOKS.items() if look.loud} == {"rcr", "bacon"}
    assert title_of("later") == short_title("later") == "later"
    assert look_of("later") not in LOOKS.values()


@pytest.mark.parametrize("ground", [LIGHT, DARK])
@pytest.mark.parametrize("policy", [*LOOKS, "later"])
def test_colours_stand_out(policy, ground):
    assert contrast(look_of(policy).colour, ground) >= 3


def test_heads_of_columns_take_the_title_of_their_policy_and_leave_the_rest():
    heads = {
        ("over_bacon", "over bacon"): "over BACON",
        ("steps_full", "tokens, full"): "tokens, Uncompressed",
        ("rate_threshold", "refresh rate, threshold"): "refresh rate, Fixed tau0",
        ("rcr", "fidelity, rcr"): "fidelity, RCR",
        ("drift_exact", "drift, exact"): "drift, exact",
        ("reads", "reads"): "reads",
    }
    for (name, head), expected in heads.items():
        assert head_of(Column(name, head, "score")) == expected


def boxes(marks, places):
    """Left, low, right, high of every label, as wide as its letters are at 12 px."""
    for (x, y, text), place in zip(marks, places, strict=True):
        long = 6.5 * len(text)
        left = x + 8 if place.side > 0 else x - 8 - long
        yield left, y + place.up - 7, left + long, y + place.up + 7


def test_labels_cover_neither_each_other_nor_a_mark():
    dice = np.random.default_rng(3)
    for _ in range(40):
        at = zip(dice.choice([20, 130, 180, 250], 9), dice.uniform(0, 380, 9), strict=True)
        marks = [(x, y, "InfiniGen") for x, y in at]
        found = list(boxes(marks, placed(marks, 270)))
        for at, (left, low, right, high) in enumerate(found):
            assert left >= 0 and right <= 270
            for other in found[:at]:
                assert right <= other[0] or other[2] <= left or high <= other[1] or other[3] <= low


def test_labels_of_many_marks_at_one_place_find_room_below():
    """Nine policies tie at the top of the plot, where another label stands already."""
    marks = [(x, 360.0, "InfiniGen") for x in (20, 20, 20, 130, 130, 130, 200, 200, 250)]
    named = Box(40, 360, 120, 375)
    found = list(boxes(marks, placed(marks, 270, boxes=[named], height=380)))
    for at, (left, low, right, high) in enumerate(found):
        assert left >= 0 and right <= 270 and high <= 380
        others = [*found[:at], (named.left, named.low, named.right, named.high)]
        for other in others:
            assert right <= other[0] or other[2] <= left or high <= other[1] or other[3] <= low


def test_a_label_keeps_off_a_line_where_it_can():
    mark = [(50.0, 100.0, "RCR")]
    (free,) = placed(mark, 270)
    assert (free.side, free.up) == (1, 0)
    (moved,) = placed(mark, 270, [[(50.0, 100.0), (150.0, 100.0)]])
    assert (moved.side, moved.up) != (1, 0)


def test_spread_keeps_the_order_and_moves_no_more_than_need_be():
    assert spread([0.0, 100.0, 50.0]) == [0.0, 100.0, 50.0]
    assert spread([10.0, 10.0]) in ([2.5, 17.5], [17.5, 2.5])
    heights = [30.0, 31.0, 33.0, 90.0, 91.0]
    moved = spread(heights)
    assert np.argsort(moved).tolist() == [0, 1, 2, 3, 4]
    assert min(np.diff(moved)) == pytest.approx(LINE)
    assert np.mean(moved[:3]) == pytest.approx(np.mean(heights[:3]))
