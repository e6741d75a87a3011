"""The figure of tau shows each decision's own threshold, in decode order, beside what it tracks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.viz.samples import changed, made_trace, naive_decisions
from viz.threshold import tau_figure


def test_tau_is_the_path_through_the_decisions():
    trace = made_trace()
    path = tau_figure(trace).data[0]
    decided = naive_decisions(trace)
    assert list(path.x) == [step + layer / 4 for step, layer in decided]
    assert list(path.y) == [trace.tau[one] for one in decided]
    assert path.line.shape == "hv"
    for told, (step, layer) in zip(path.customdata, decided, strict=True):
        refreshed = "refreshed" if trace.fire[step, layer] else "kept its selection"
        drift = pytest.approx(float(trace.drift[step, layer]))
        assert list(told) == [step, layer, f"“ word{step}”", drift, refreshed]


def test_tau_ends_where_the_trace_says():
    trace = made_trace()
    assert tau_figure(trace).data[0].y[-1] == pytest.approx(trace.tau_end)


def test_what_tau_tracks_is_the_quantile_of_drift_over_sixteen_steps():
    trace = made_trace()
    tracked = tau_figure(trace).data[1]
    assert tracked.name == "(1 - rho)-quantile of drift, last 16 steps"
    assert list(tracked.x) == [step + 0.75 for step in range(1, 40)]  # at the last of four layers
    for step, height in enumerate(tracked.y, start=1):
        seen = sorted(float(trace.drift[one]) for one in naive_decisions(trace) if step - 16 < one[0] <= step)
        place = 0.6 * (len(seen) - 1)  # linear between the ranks
        low = int(place)
        between = seen[low] + (place - low) * (seen[min(low + 1, len(seen) - 1)] - seen[low])
        assert height == pytest.approx(between, abs=1e-6)


def test_tau0_is_a_dotted_line_from_end_to_end():
    figure = tau_figure(made_trace())
    start = figure.data[2]
    assert list(start.y) == [0.03, 0.03]
    assert list(start.x) == [figure.data[0].x[0], figure.data[0].x[-1]]
    assert start.line.dash == "dot"


def test_a_fixed_threshold_has_no_target_to_track():
    trace = made_trace(policy="threshold")
    trace = changed(trace, tau=np.where(trace.tau > 0, np.float32(0.03), np.float32(0)))
    figure = tau_figure(trace)
    assert [one.name for one in figure.data] == ["tau", "tau0, the threshold at the start"]


def test_the_axis_is_logarithmic_and_a_decade_high_at_least():
    trace = made_trace(policy="threshold")
    flat = changed(trace, tau=np.where(trace.tau > 0, np.float32(0.03), np.float32(0)))
    axis = tau_figure(flat).layout.yaxis
    assert axis.type == "log"
    low, high = axis.range
    assert high - low == pytest.approx(1)
    assert low < np.log10(0.03) < high
    wide = tau_figure(made_trace())
    low, high = wide.layout.yaxis.range
    assert low < np.log10(wide.data[0].y.min()) and np.log10(wide.data[0].y.max()) < high


def test_settings_that_are_no_numbers_are_left_out():
    figure = tau_figure(made_trace(settings={"tau0": "high", "rho": None, "gain": True}))
    assert [one.name for one in figure.data] == ["tau"]


def test_a_drift_of_zero_does_not_stretch_the_axis():
    trace = made_trace()
    figure = tau_figure(changed(trace, drift=np.zeros_like(trace.drift)))
    assert np.isfinite(figure.layout.yaxis.range).all()
    low, high = figure.layout.yaxis.range
    assert high - low < 4
