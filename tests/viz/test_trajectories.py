"""The figures of a run show the trace's own numbers, say why where nothing is drawn, and fit both themes."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from rcr_core.errors import ScopeError
from tests.core.trace_samples import small_trace
from tests.viz.samples import changed, full_trace, made_trace, naive_decisions, one_shot_trace
from viz.trajectories import FIGURES, figure_json


def said(figure: go.Figure) -> str:
    """What an empty figure says; "" for one that draws something."""
    assert bool(figure.data) != bool(figure.layout.annotations)
    return figure.layout.annotations[0].text if figure.layout.annotations else ""


def curve(figure: go.Figure, name: str):
    return next(trace for trace in figure.data if trace.name == name)


def test_drift_shows_every_decision_and_nothing_else():
    trace = made_trace()
    drawn = FIGURES["drift"](trace).data[0]
    assert drawn.z.shape == (4, 39)
    assert list(drawn.x) == list(range(1, 40))
    assert list(drawn.y) == [0, 1, 2, 3]
    decided = naive_decisions(trace)
    assert np.isfinite(drawn.z).sum() == len(decided) == 78
    for step, layer in decided:
        assert drawn.z[layer, step - 1] == trace.drift[step, layer]
        refreshed = "refreshed" if trace.fire[step, layer] else "kept its selection"
        told = f"token “ word{step}”<br>{refreshed}, tau {trace.tau[step, layer]:.4g}"
        assert drawn.text[layer][step - 1] == told
    assert (drawn.zmin, drawn.zmax) == (0, pytest.approx(max(trace.drift[one] for one in decided)))


def test_drift_can_mark_the_refreshes():
    trace = made_trace()
    marks = FIGURES["drift"](trace).data[1]
    assert list(zip(marks.x, marks.y, strict=True)) == [
        one for one in naive_decisions(trace) if trace.fire[one]
    ]
    assert marks.visible == "legendonly"


def test_drift_of_a_one_shot_policy_is_drawn_too():
    trace = one_shot_trace()
    figure = FIGURES["drift"](trace)
    assert np.isfinite(figure.data[0].z).sum() == 10
    assert figure.data[0].text[2][0] == "token “ word1”<br>kept its selection"
    assert len(figure.data[1].x) == 0


def test_the_rate_ends_at_the_refresh_rate_of_the_trace():
    trace = made_trace()
    total = curve(FIGURES["rate"](trace), "since the start").y
    assert 0 < trace.refresh_rate < 1
    assert total[-1] == pytest.approx(trace.refresh_rate, abs=1e-12)


def test_the_running_rates_are_those_counted_step_by_step():
    trace = made_trace()
    figure = FIGURES["rate"](trace)
    total, recent = curve(figure, "since the start"), curve(figure, "last 16 steps")
    assert list(total.x) == list(recent.x) == list(range(1, 40))
    decided = naive_decisions(trace)
    for at, step in enumerate(range(1, 40)):
        so_far = [int(trace.fire[one]) for one in decided if one[0] <= step]
        lately = [int(trace.fire[one]) for one in decided if step - 16 < one[0] <= step]
        assert total.y[at] == pytest.approx(sum(so_far) / len(so_far), abs=1e-12)
        assert recent.y[at] == pytest.approx(sum(lately) / len(lately), abs=1e-12)
        now = [int(trace.fire[one]) for one in decided if one[0] == step]
        assert list(total.customdata[at][:3]) == [f"“ word{step}”", sum(now), 2]


def test_steps_without_a_decision_leave_the_rate_as_it_is():
    trace = made_trace(4)
    row = trace.selected_row.copy()
    row[1] = -1
    total = curve(FIGURES["rate"](changed(trace, selected_row=row)), "since the start").y
    assert np.isnan(total[0])
    assert total[-1] == pytest.approx(trace.fire[2:].sum() / 4)


def test_rho_stands_only_where_a_policy_steers_to_it():
    figure = FIGURES["rate"](made_trace())
    rho = curve(figure, "rho, the target rate")
    assert set(rho.y) == {0.4}
    assert rho.line.dash == "dash"
    settings = {"rho": 0.4, "gain": 0.05}
    for other in (
        made_trace(policy="threshold", settings=settings),
        made_trace(settings={"rho": 0.4, "gain": 0}),
        made_trace(settings={"rho": "a lot"}),
        made_trace(settings={}),
        one_shot_trace(settings=settings),
    ):
        assert "rho" not in " ".join(one.name for one in FIGURES["rate"](other).data)


def test_rho_follows_its_edits():
    edits = [{"kind": "rho", "step": 20, "value": 0.2}, {"kind": "hold", "step": 3}, {"kind": "rho"}]
    rho = curve(FIGURES["rate"](made_trace(edits=edits)), "rho, the target rate")
    assert list(rho.y) == [0.4] * 19 + [0.2] * 20
    assert rho.line.shape == "hv"


def test_mass_is_the_mean_over_managed_layers_and_fills_the_whole():
    trace = made_trace()
    figure = FIGURES["mass"](trace)
    names = ["selected visual", "selected text", "window", "generated"]
    assert [one.name for one in figure.data] == names
    assert {one.stackgroup for one in figure.data} == {"mass"}
    for kind, one in enumerate(figure.data):
        assert list(one.x) == list(range(40))
        for step in (0, 1, 17, 39):
            mean = sum(float(trace.mass[step, layer, kind]) for layer in (1, 2, 3)) / 3
            assert one.y[step] == pytest.approx(mean, abs=1e-7)
    np.testing.assert_allclose(sum(one.y for one in figure.data), 1, atol=1e-6)
    label = figure.data[0]
    assert label.customdata[0][0] == "“ word0” (prefill: the whole prompt takes part)"
    assert list(label.customdata[5][1:]) == [one.y[5] for one in figure.data]
    for at, name in enumerate(names, start=1):
        assert f"{name} %{{customdata[{at}]:.1%}}" in label.hovertemplate


@pytest.mark.parametrize("name", FIGURES)
def test_a_run_without_decode_steps_says_so(name):
    none = made_trace(0, timings={"prefill": 0, "steps": []})
    assert said(FIGURES[name](none)) == "There is no step yet."
    assert said(FIGURES[name](made_trace(1))) == "Only the prefill so far, which takes no decision."
    assert said(FIGURES[name](made_trace(2))) == ""


def test_a_run_that_keeps_everything_says_so():
    for name in ("tau", "drift", "rate"):
        assert said(FIGURES[name](full_trace())).startswith("Every layer keeps its whole prefix")
    assert said(FIGURES["mass"](full_trace())) == ""


def test_a_run_whose_layers_are_all_passed_through_says_so():
    for name in FIGURES:
        trace = full_trace(managed=[False] * 4)
        assert said(FIGURES[name](trace)).startswith("Every layer is passed through")


def test_one_shot_has_a_rate_of_zero_and_no_tau():
    trace = one_shot_trace()
    assert (
        said(FIGURES["tau"](trace)) == "The policy bacon compares drift with no threshold: there is no tau."
    )
    assert set(curve(FIGURES["rate"](trace), "since the start").y) == {0}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("make", [made_trace, one_shot_trace, full_trace, small_trace])
def test_the_json_is_plain_json_without_numbers_that_json_lacks(name, make):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    figure = json.loads(figure_json(name, make()), parse_constant=refuse)
    assert set(figure) == {"data", "layout"}


@pytest.mark.parametrize("name", FIGURES)
def test_markup_in_a_token_stays_text(name):
    text = ["A", "<b onclick=x>&", None, "\n\t\x07", "long" * 20]
    trace = made_trace(5, token_text=text)
    drawn = json.dumps(json.loads(figure_json(name, trace)), ensure_ascii=False)
    assert "“&lt;b onclick=x&gt;&amp;”" in drawn
    assert "<b" not in drawn.replace("<br>", "")
    assert "(completes no character)" in drawn
    assert "“⏎⇥·”" in drawn
    assert f"“{'long' * 10}…”" in drawn


def test_markup_in_the_name_of_a_policy_stays_text():
    trace = one_shot_trace()
    trace = changed(made_trace(6, policy="<i>x</i>"), tau=trace.tau)
    assert "&lt;i&gt;x&lt;/i&gt;" in said(FIGURES["tau"](trace))


@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_titled_and_hover_texts_name_step_and_token(name):
    figure = FIGURES[name](made_trace())
    assert figure.layout.xaxis.title.text.startswith("step (generated token)")
    assert figure.layout.yaxis.title.text
    assert "step %{" in figure.data[0].hovertemplate
    told = figure.data[0].hovertemplate + str(figure.data[0].text)
    assert "token" in told
    if name in ("tau", "drift"):
        assert "layer %{" in told


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("make", [made_trace, full_trace])
def test_no_colour_of_a_text_or_ground_is_fixed(name, make):
    figure = json.loads(figure_json(name, make()))
    layout = figure["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0, 0, 0, 0)"

    def fonts(value, path=""):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from fonts(inner, f"{path}.{key}")
        elif isinstance(value, list):
            for inner in value:
                yield from fonts(inner, path)
        else:
            yield path

    assert not [path for path in fonts(layout) if "font" in path]


def test_an_unknown_figure_is_refused_with_the_known_ones():
    with pytest.raises(ScopeError) as caught:
        figure_json("pie", made_trace(2))
    assert caught.value.message == "there is no figure 'pie'"
    assert caught.value.hint == "known figures: tau, drift, rate, mass"
