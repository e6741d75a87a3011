"""tau follows tau * exp(gain * (f - rho)), and nothing else moves it."""

import math

import numpy as np
import pytest
import torch

from rcr_core.control import RateController

CPU = torch.device("cpu")


def controller(tau0=0.03, rho=0.4, gain=0.05, update="layer") -> RateController:
    return RateController(tau0, rho, gain, update, CPU)


def fires(layers: int, steps: int, share: float = 0.5) -> np.ndarray:
    return np.random.default_rng(0).random((steps, layers)) < share


def drive(control: RateController, decisions: np.ndarray) -> list[float]:
    """Feed decisions [steps, layers]; tau after every layer."""
    taus = []
    for step in decisions:
        for fire in step:
            control.observe(torch.tensor(bool(fire)))
            taus.append(float(control.tau))
        control.end_step()
    return taus


def test_tau_after_each_layer_is_the_closed_form():
    tau, expected = 0.03, []
    decisions = fires(7, 20)
    for fire in decisions.ravel():
        tau *= math.exp(0.05 * (float(fire) - 0.4))
        expected.append(tau)
    assert drive(controller(), decisions) == pytest.approx(expected, rel=1e-9)


def test_tau_of_a_step_moves_once_by_the_share_of_its_layers():
    control, tau = controller(gain=0.3, update="step"), 0.03
    for step in fires(7, 12):
        for fire in step:
            control.observe(torch.tensor(bool(fire)))
            assert float(control.tau) == pytest.approx(tau, rel=1e-9)
        control.end_step()
        tau *= math.exp(0.3 * (step.mean() - 0.4))
        assert float(control.tau) == pytest.approx(tau, rel=1e-9)


@pytest.mark.parametrize("update", ["layer", "step"])
def test_the_rate_identity_holds(update):
    """sum over updates of (f - rho) = ln(tau_end / tau0) / gain."""
    control, decisions = controller(tau0=0.2, gain=0.02, update=update), fires(5, 30)
    drive(control, decisions)
    shares = decisions.ravel() if update == "layer" else decisions.mean(1)
    assert math.log(float(control.tau) / 0.2) / 0.02 == pytest.approx(np.sum(shares - 0.4), abs=1e-6)


def test_a_threshold_too_low_settles_at_the_target_rate():
    """Drifts drawn from [0, 1): tau must come to their 60th percentile, wherever it started."""
    control, drifts, fired = controller(tau0=1e-6), np.random.default_rng(1).random(4000), 0
    for drift in drifts:
        fire = control.exceeded(torch.tensor(drift))
        fired += bool(fire)
        control.observe(fire)
    assert fired / 4000 == pytest.approx(
        0.4, abs=abs(math.log(float(control.tau) / 1e-6)) / 0.05 / 4000 + 1e-6
    )
    assert float(control.tau) == pytest.approx(0.6, abs=0.15)


@pytest.mark.parametrize("update", ["layer", "step"])
@pytest.mark.parametrize("fire, limit", [(True, 1.0), (False, 1e-6)])
def test_tau_stops_at_its_limits_and_comes_back(fire, limit, update):
    control = controller(gain=5.0, update=update)
    drive(control, np.full((30, 2), fire))
    assert float(control.tau) == pytest.approx(limit, rel=1e-9)
    drive(control, np.full((1, 1), not fire))
    assert float(control.tau) == pytest.approx(limit * math.exp(5.0 * (float(not fire) - 0.4)), rel=1e-9)


@pytest.mark.parametrize("update", ["layer", "step"])
def test_without_gain_tau_never_moves(update):
    control = controller(gain=0.0, update=update)
    assert set(drive(control, fires(3, 10))) == {float(control.tau)}
    assert float(control.tau) == pytest.approx(0.03, rel=1e-12)


def test_the_comparison_is_strict():
    control = controller(tau0=1.0)
    assert not control.exceeded(torch.tensor(1.0))
    assert not control.exceeded(torch.tensor(0.0))
    low = controller(tau0=0.25)
    assert low.exceeded(torch.tensor(0.2500001))
    assert not low.exceeded(torch.tensor(0.2499999))


def test_a_new_rho_steers_from_here_on():
    control = controller()
    drive(control, np.array([[True]]))
    control.set_rho(0.9)
    drive(control, np.array([[True], [False]]))
    assert float(control.tau) == pytest.approx(0.03 * math.exp(0.05 * (0.6 + 0.1 - 0.9)), rel=1e-9)


def test_a_new_rho_steers_whole_steps_too():
    control = controller(update="step")
    control.set_rho(0.1)
    drive(control, np.array([[True, False]]))
    assert float(control.tau) == pytest.approx(0.03 * math.exp(0.05 * (0.5 - 0.1)), rel=1e-9)


def test_a_new_tau_is_where_the_controller_goes_on():
    control = controller()
    drive(control, np.array([[True, True]]))
    control.set_tau(0.5)
    assert float(control.tau) == pytest.approx(0.5, rel=1e-12)
    drive(control, np.array([[False]]))
    assert float(control.tau) == pytest.approx(0.5 * math.exp(-0.05 * 0.4), rel=1e-9)


def test_an_earlier_tau_keeps_its_value():
    """A record holds the tau that a decision used; later updates must not reach into it."""
    control = controller()
    before = control.tau
    drive(control, np.array([[True]]))
    moved = control.tau
    control.set_tau(0.9)
    assert float(before) == pytest.approx(0.03, rel=1e-12)
    assert float(moved) == pytest.approx(0.03 * math.exp(0.05 * 0.6), rel=1e-9)


def test_a_step_without_decisions_moves_nothing():
    control = controller(update="step")
    control.end_step()
    assert float(control.tau) == pytest.approx(0.03, rel=1e-12)
