"""Edits refuse what makes no sense; the gate applies them in their window, and of two the later one wins."""

import math

import pytest
import torch

from rcr_core.edits import Edit, Gate, edits_from_dicts
from rcr_core.errors import EditError

CPU = torch.device("cpu")
INF = float("inf")


@pytest.mark.parametrize(
    "values, words",
    [
        ({"kind": "jump", "step": 1}, "unknown edit 'jump'"),
        ({"kind": "refresh", "step": 0}, "step of at least 1, got 0"),
        ({"kind": "refresh", "step": -3}, "step of at least 1"),
        ({"kind": "hold", "step": 5, "until": 4}, r"until must be at least step \(5\)"),
        ({"kind": "pin", "step": 5, "until": 6, "index": 1}, "until"),
        ({"kind": "tau", "step": 5, "until": 6, "value": 0.1}, "until"),
        ({"kind": "pin", "step": 1}, "pin needs the index"),
        ({"kind": "ban", "step": 1}, "ban needs the index"),
        ({"kind": "ban", "step": 1, "index": -1}, "ban needs the index"),
        ({"kind": "tau", "step": 1}, r"tau needs a value in \[1e-06, 1\]"),
        ({"kind": "tau", "step": 1, "value": 0.0}, "tau needs a value"),
        ({"kind": "tau", "step": 1, "value": 1.1}, "tau needs a value"),
        ({"kind": "tau", "step": 1, "value": math.nan}, "tau needs a value"),
        ({"kind": "tau", "step": 1, "value": 0.5, "layer": 2}, "no layer"),
        ({"kind": "rho", "step": 1}, r"rho needs a value in \[0, 1\]"),
        ({"kind": "rho", "step": 1, "value": -0.1}, "rho needs a value"),
        ({"kind": "rho", "step": 1, "value": 1.1}, "rho needs a value"),
    ],
)
def test_an_edit_without_sense_is_refused_in_words(values, words):
    with pytest.raises(EditError, match=words):
        Edit(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "refresh", "step": 1},
        {"kind": "hold", "step": 2, "layer": 3, "until": 2},
        {"kind": "pin", "step": 1, "index": 0},
        {"kind": "ban", "step": 4, "index": 7, "layer": 0},
        {"kind": "tau", "step": 1, "value": 1e-6},
        {"kind": "tau", "step": 1, "value": 1.0},
        {"kind": "rho", "step": 9, "value": 0.0},
        {"kind": "rho", "step": 9, "value": 1.0},
    ],
)
def test_a_sensible_edit_survives_its_dictionary(values):
    (edit,) = edits_from_dicts([values])
    assert edit == Edit(**values)
    assert edit.to_dict() == values


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "hold", "step": 1.5},
        {"kind": "hold", "step": True},
        {"kind": "hold", "step": 1, "until": 2.5},
        {"kind": "hold", "step": 1, "layer": 0.5},
        {"kind": "pin", "step": 1, "index": 1.5},
    ],
)
def test_steps_layers_and_indices_are_whole_numbers(values):
    """Half a step is never reached, so the edit would do nothing; half an index would crash the run."""
    with pytest.raises(EditError):
        edits_from_dicts([values])


@pytest.mark.parametrize("values", [{"kind": "pin", "step": 1, "token": 3}, {"kind": "pin"}, {"step": "1"}])
def test_a_foreign_dictionary_is_refused(values):
    with pytest.raises(EditError):
        edits_from_dicts([values])


def at(gate: Gate, step: int) -> Gate:
    gate.begin_step(step)
    return gate


def verdicts(gate: Gate, layer: int, steps: range) -> list[bool | None]:
    return [at(gate, step).refresh(layer) for step in steps]


def test_without_edits_the_policy_decides_everything():
    gate = at(Gate(), 1)
    assert gate.refresh(0) is None and gate.value("tau") is None and gate.bias(0, 9, CPU) is None
    assert not gate.moved(0)
    for fire in (torch.tensor(True), torch.tensor(False)):
        assert gate.fire(0, fire) is fire


def test_a_forced_refresh_lasts_one_step_unless_it_says_until():
    assert verdicts(Gate((Edit("refresh", 3),)), 0, range(1, 6)) == [None, None, True, None, None]
    gate = Gate((Edit("hold", 2, until=4),))
    assert verdicts(gate, 5, range(1, 6)) == [None, False, False, False, None]


def test_an_edit_of_a_layer_leaves_the_others_alone():
    gate = at(Gate((Edit("refresh", 3, layer=2), Edit("pin", 3, layer=1, index=4))), 3)
    assert [gate.refresh(layer) for layer in range(4)] == [None, None, True, None]
    assert [gate.bias(layer, 9, CPU) is None for layer in range(4)] == [True, False, True, True]
    assert [gate.moved(layer) for layer in range(4)] == [False, True, False, False]


def test_a_verdict_replaces_the_decision():
    gate = Gate((Edit("refresh", 1), Edit("hold", 2)))
    yes, no = torch.tensor(True), torch.tensor(False)
    assert bool(at(gate, 1).fire(0, no)) and not bool(at(gate, 2).fire(0, yes))
    assert gate.fire(0, yes).dtype == torch.bool and gate.fire(0, yes).shape == ()


def test_of_two_verdicts_the_later_one_wins_whatever_their_order():
    early, late = Edit("hold", 1, until=9), Edit("refresh", 3, until=5)
    for edits in ((early, late), (late, early)):
        assert verdicts(Gate(edits), 0, range(1, 8)) == [False, False, True, True, True, False, False]
    same = (Edit("refresh", 1), Edit("hold", 1))
    assert verdicts(Gate(same), 0, range(1, 2)) == [False]
    assert verdicts(Gate(same[::-1]), 0, range(1, 2)) == [True]


def test_pins_and_bans_hold_from_their_step_on():
    gate = Gate((Edit("pin", 2, index=3), Edit("ban", 4, index=0)))
    assert at(gate, 1).bias(0, 5, CPU) is None
    assert at(gate, 2).bias(0, 5, CPU).tolist() == [0, 0, 0, INF, 0]
    assert at(gate, 3).bias(0, 5, CPU).tolist() == [0, 0, 0, INF, 0]
    assert at(gate, 4).bias(0, 5, CPU).tolist() == [-INF, 0, 0, INF, 0]
    assert at(gate, 9).bias(0, 5, CPU).tolist() == [-INF, 0, 0, INF, 0]


def test_a_selection_moves_only_where_a_pin_or_ban_starts():
    gate = Gate((Edit("pin", 2, index=3), Edit("ban", 4, layer=1, index=0), Edit("refresh", 5)))
    assert [at(gate, step).moved(1) for step in range(1, 6)] == [False, True, False, True, False]
    assert [at(gate, step).moved(0) for step in range(1, 6)] == [False, True, False, False, False]


def test_of_a_pin_and_a_ban_of_one_entry_the_later_one_wins():
    early, late = Edit("pin", 1, index=2), Edit("ban", 3, index=2)
    for edits in ((early, late), (late, early)):
        gate = Gate(edits)
        assert at(gate, 2).bias(0, 4, CPU).tolist() == [0, 0, INF, 0]
        assert at(gate, 3).bias(0, 4, CPU).tolist() == [0, 0, -INF, 0]


def test_tau_and_rho_are_set_once_at_their_step():
    gate = Gate((Edit("tau", 2, value=0.5), Edit("rho", 2, value=0.1), Edit("tau", 4, value=0.2)))
    assert [at(gate, step).value("tau") for step in range(1, 6)] == [None, 0.5, None, 0.2, None]
    assert [at(gate, step).value("rho") for step in range(1, 6)] == [None, 0.1, None, None, None]
    assert at(Gate((Edit("rho", 1, value=0.1), Edit("rho", 1, value=0.7))), 1).value("rho") == 0.7


@pytest.mark.parametrize(
    "edits, words",
    [
        ((Edit("refresh", 1, layer=4),), r"layer must be in \[0, 3\], got 4"),
        ((Edit("hold", 1, layer=-1),), r"layer must be in \[0, 3\], got -1"),
        ((Edit("pin", 1, index=10),), r"index must be in \[0, 9\]"),
        (tuple(Edit("pin", 1, index=at) for at in range(4)), "at most 3 entries of a layer can be pinned"),
        (tuple(Edit("ban", 1, index=at) for at in range(8)), "too many bans"),
    ],
)
def test_edits_that_the_run_cannot_follow_are_refused(edits, words):
    with pytest.raises(EditError, match=words):
        Gate(edits).check(layers=4, prefix=10, select=3)


def test_edits_at_the_edge_of_the_run_are_followed():
    pins = tuple(Edit("pin", 1, index=at) for at in (0, 5, 9))
    bans = tuple(Edit("ban", 1, index=at) for at in range(7))
    for edits in (pins, bans, (Edit("refresh", 1, layer=3), Edit("hold", 2, layer=0))):
        Gate(edits).check(layers=4, prefix=10, select=3)


def test_pins_of_different_layers_do_not_add_up():
    """Three slots in each layer: one pin in each of four layers fits."""
    Gate(tuple(Edit("pin", 1, layer=at, index=at) for at in range(4))).check(layers=4, prefix=10, select=3)
    Gate(tuple(Edit("ban", 1, layer=at % 4, index=at) for at in range(8))).check(
        layers=4, prefix=10, select=3
    )


def test_a_prefix_that_is_kept_whole_takes_any_number_of_bans():
    bans = tuple(Edit("ban", 1, index=at) for at in range(3))
    Gate(bans).check(layers=4, prefix=3, select=3)
    with pytest.raises(EditError, match="too many bans"):
        Gate(bans).check(layers=4, prefix=4, select=3)
