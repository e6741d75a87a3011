"""Figures of a study hold the numbers of its rows, worked out here from the rows alone."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rcr_core.errors import ScopeError
from rcr_core.findings import Evidence, evidence_of
from tests.viz.study_samples import BUDGETS, LAYERS, LEVELS, PREFIX, RANKS, RATES, TAU0, made_rows
from viz.study.figures import STUDY_FIGURES, study_figure_json
from viz.study.names import TITLES

NAMES = {
    "fidelity",
    "pareto",
    "images",
    "terciles",
    "gap",
    "thresholds",
    "rates",
    "budgets",
    "grid",
    "controller",
    "layers",
    "detector",
}
BASE = {"select": 32, "rho": 0.4, "tau0": 0.03, "rank": 8, "update": "layer"}
ROWS = made_rows()


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    (found,) = evidence_of(ROWS)
    return found


@pytest.fixture(scope="module")
def figures(evidence) -> dict:
    return {name: draw(evidence) for name, draw in STUDY_FIGURES.items()}


def rows_of(policy: str, **changes) -> dict:
    """The rows of a policy at the defaults but for some settings, by sample, those with diagnostics last."""
    wanted = {**BASE, **changes}
    chosen = [row for row in ROWS if row.policy == policy and wanted.items() <= row.settings.items()]
    return {row.sample: row for row in sorted(chosen, key=lambda row: row.settings["diagnostics"])}


def mean(policy: str, name: str = "fidelity", **changes) -> float:
    return float(np.mean([getattr(row, name) for row in rows_of(policy, **changes).values()]))


def trace(figure, name: str, axis: str = "y", mode: str = ""):
    """The only trace of a name on an axis."""
    (found,) = (
        one
        for one in figure.data
        if one.name == name and (one.yaxis or "y") == axis and (not mode or one.mode == mode)
    )
    return found


def test_every_figure_is_drawn_with_title_caption_and_axes(figures):
    assert set(figures) == NAMES
    for name, figure in figures.items():
        assert figure.layout.title.text, name
        assert figure.layout.meta["caption"].endswith("."), name
        assert figure.layout.xaxis.title.text, name
        assert figure.layout.height, name
        if name != "fidelity":  # its y axis lists the policies
            assert figure.layout.yaxis.title.text, name


def test_fidelity_is_the_mean_and_the_best_stands_at_the_top(figures):
    figure = figures["fidelity"]
    found = {one.y[0]: one for one in figure.data}
    assert set(found) == {TITLES[policy] for policy in LEVELS if policy != "full"}
    for policy in set(LEVELS) - {"full"}:
        values = np.array([row.fidelity for row in rows_of(policy).values()])
        one = found[TITLES[policy]]
        assert one.x[0] == pytest.approx(values.mean())
        drawn = stats.bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=1)
        low, high = drawn.confidence_interval
        assert one.x[0] - one.error_x.arrayminus[0] == pytest.approx(low, abs=0.003)
        assert one.x[0] + one.error_x.array[0] == pytest.approx(high, abs=0.003)
        assert "40 images" in one.hovertext[0]
    order = figure.layout.yaxis.categoryarray
    heights = [found[name].x[0] for name in order]
    assert heights == sorted(heights)
    levels = {shape.x0 for shape in figure.layout.shapes}
    assert levels == {1, found["BACON"].x[0]}


def test_images_are_pairs_with_the_key_of_the_run(figures):
    (marks,) = figures["images"].data
    rcr, bacon = rows_of("rcr"), rows_of("bacon")
    assert len(marks.x) == 40
    for x, y, (key, sample) in zip(marks.x, marks.y, marks.customdata, strict=True):
        assert (x, y) == (bacon[sample].fidelity, rcr[sample].fidelity)
        assert key == rcr[sample].key
    ahead = sum(rcr[sample].fidelity > bacon[sample].fidelity for sample in rcr)
    assert f"{ahead} of 40 images" in figures["images"].layout.meta["caption"]


def test_the_gap_is_infinigens_lead_over_drift(figures):
    (marks,) = figures["gap"].data
    rcr, other = rows_of("rcr"), rows_of("infinigen")
    for x, y, (key, sample) in zip(marks.x, marks.y, marks.customdata, strict=True):
        assert x == rcr[sample].mean_drift
        assert y == pytest.approx(other[sample].fidelity - rcr[sample].fidelity)
        assert key == rcr[sample].key
    expected = stats.spearmanr(marks.x, marks.y).statistic
    assert f"{expected:.3f}".replace("-", "−") in figures["gap"].layout.meta["caption"]


def test_pareto_puts_each_policy_at_its_reads(figures):
    figure = figures["pareto"]
    rate = mean("rcr", "refresh_rate")
    reads = {
        "bacon": 0,
        "snapkv": 0,
        "oracle": 0,
        "exact": PREFIX + 32,
        "quest": 64,
        "arkvale": 64,
        "infinigen": 64,
        "rcr": 160 * rate,
        "threshold": 160 * mean("threshold", "refresh_rate"),
    }
    for policy, expected in reads.items():
        mark = trace(figure, TITLES[policy])
        assert mark.customdata[0] == pytest.approx(expected)
        assert mark.y[0] == pytest.approx(mean(policy))
        if expected:
            assert mark.x[0] == pytest.approx(np.log10(expected))
    assert trace(figure, "BACON").x[0] < min(np.log10(value) for value in reads.values() if value) - 0.3
    ticks = dict(zip(figure.layout.xaxis.ticktext, figure.layout.xaxis.tickvals, strict=True))
    assert ticks["0"] == trace(figure, "BACON").x[0]
    assert ticks["100"] == pytest.approx(2)
    curve = trace(figure, "RCR over rho")
    assert list(curve.customdata) == pytest.approx(
        [160 * mean("rcr", "refresh_rate", rho=rho) for rho in RATES]
    )
    assert list(curve.y) == pytest.approx([mean("rcr", rho=rho) for rho in RATES])
    for policy in reads:
        line = trace(figure, f"{TITLES[policy]} over select")
        assert line.opacity < 1
        assert sorted(line.y) == pytest.approx(sorted(mean(policy, select=select) for select in BUDGETS))
    labels = [label.text for label in figure.layout.annotations]
    assert {"<b>RCR</b>", "<b>BACON</b>", "Exact", "Uncompressed", "better"} <= set(labels)
    assert len(labels) == 9 + 2


def test_thresholds_stand_beside_the_level_of_rcr(figures):
    figure = figures["thresholds"]
    for axis, name in (("y", "fidelity"), ("y2", "refresh_rate")):
        curve = trace(figure, "Fixed threshold", axis)
        assert tuple(curve.x) == TAU0
        assert list(curve.y) == pytest.approx([mean("threshold", name, tau0=tau0) for tau0 in TAU0])
        (level,) = (shape.y0 for shape in figure.layout.shapes if shape.yref == axis)
        assert level == pytest.approx(mean("rcr", name))
    assert figure.layout.xaxis.type == "log"


def test_thresholds_are_named_where_they_fit(figures):
    axis = figures["thresholds"].layout.xaxis
    assert tuple(axis.tickvals) == TAU0
    named = [(value, text) for value, text in zip(axis.tickvals, axis.ticktext, strict=True) if text]
    assert len(named) < len(TAU0)
    assert all(float(text) == value for value, text in named)
    # On the narrowest plot, of 240 pixels, a letter is 7 wide.
    places = 240 * np.log10([value for value, _ in named]) / np.log10(TAU0[-1] / TAU0[0])
    widths = [7 * len(text) for _, text in named]
    assert all(np.diff(places) > (np.array(widths[1:]) + widths[:-1]) / 2)


def test_rates_stand_beside_what_was_asked_for(figures):
    figure = figures["rates"]
    for axis, name in (("y", "fidelity"), ("y2", "refresh_rate")):
        curve = trace(figure, "RCR", axis)
        assert tuple(curve.x) == RATES
        assert list(curve.y) == pytest.approx([mean("rcr", name, rho=rho) for rho in RATES])
    (diagonal,) = (shape for shape in figure.layout.shapes if shape.yref == "y2")
    assert (diagonal.x0, diagonal.y0, diagonal.x1, diagonal.y1) == (0.1, 0.1, 0.8, 0.8)


def test_budgets_have_a_curve_and_a_name_for_each_policy(figures):
    figure = figures["budgets"]
    for policy in set(LEVELS) - {"full"}:
        curve = trace(figure, TITLES[policy])
        assert tuple(curve.x) == BUDGETS
        assert list(curve.y) == pytest.approx([mean(policy, select=select) for select in BUDGETS])
    assert len(figure.layout.annotations) == 9
    margin = figure.layout.margin
    low, high = figure.layout.yaxis.range
    scale = (figure.layout.height - margin.t - margin.b) / (high - low)
    heights = sorted(label.ay * scale for label in figure.layout.annotations)
    assert min(np.diff(heights)) > 14.9  # pixels: a line of text


def test_names_of_curves_stand_right_of_all_of_them():
    (evidence,) = evidence_of(
        [row for row in ROWS if row.policy != "quest" or row.settings["select"] < max(BUDGETS)]
    )
    labels = {one.text: one for one in STUDY_FIGURES["budgets"](evidence).layout.annotations}
    assert labels["Quest"].x == pytest.approx(np.log10(32))
    assert labels["Exact"].x == pytest.approx(np.log10(64))
    assert {one.axref for one in labels.values()} == {"x"}
    assert all(one.ax > np.log10(64) for one in labels.values())


def test_the_grid_holds_every_pair_and_bacon_first(figures):
    (cells,) = figures["grid"].data
    assert list(cells.y) == [str(select) for select in BUDGETS]
    assert list(cells.x) == ["BACON", *(f"{rho:g}" for rho in RATES)]
    for select, line in zip(BUDGETS, cells.z, strict=True):
        assert line[0] == pytest.approx(mean("bacon", select=select))
        for rho, value in zip(RATES, line[1:], strict=True):
            if rows_of("rcr", select=select, rho=rho):
                assert value == pytest.approx(mean("rcr", select=select, rho=rho))
            else:
                assert value is None


def test_terciles_are_by_rcrs_drift(figures):
    figure = figures["terciles"]
    rcr = rows_of("rcr")
    order = sorted(rcr, key=lambda sample: rcr[sample].mean_drift)
    thirds = [order[:14], order[14:27], order[27:]]
    for policy in ("threshold", "rcr", "exact"):
        rows = rows_of(policy)
        marks = trace(figure, TITLES[policy])
        for third, height, x in zip(thirds, marks.y, marks.x, strict=True):
            assert height == pytest.approx(np.mean([rows[sample].fidelity for sample in third]))
            assert abs(x - round(x)) < 0.3
        if policy != "exact":
            rates = trace(figure, TITLES[policy], "y2").y
            for third, rate in zip(thirds, rates, strict=True):
                assert rate == pytest.approx(np.mean([rows[sample].refresh_rate for sample in third]))
    assert [text.split("<br>")[0] for text in figure.layout.xaxis.ticktext] == ["low", "middle", "high"]


def test_layers_hold_staleness_of_the_uncompressed_run_and_rates(figures):
    figure = figures["layers"]
    still = trace(figure, "uncompressed run")
    assert list(still.x) == list(range(LAYERS))
    stale = np.mean([row.staleness for row in rows_of("full").values()], axis=0)
    np.testing.assert_allclose(still.y, stale)
    for policy in ("rcr", "threshold"):
        fired = np.mean([row.refresh_by_layer for row in rows_of(policy).values()], axis=0)
        np.testing.assert_allclose(trace(figure, TITLES[policy], "y2").y, fired)


def test_a_layer_that_decides_nothing_is_left_out():
    rows = [
        replace(row, refresh_by_layer=[None, *row.refresh_by_layer[1:]])
        for row in made_rows(6, sweeps=False)
        if row.policy == "rcr"
    ]
    (evidence,) = evidence_of(rows)
    assert list(trace(STUDY_FIGURES["layers"](evidence), "RCR", "y2").x) == list(range(1, LAYERS))


def test_the_detector_over_its_rank(figures):
    figure = figures["detector"]
    for name, axis, value in (
        ("recall", "y", lambda row: row.recall),
        ("bias", "y2", lambda row: row.mean_drift - row.drift_exact),
    ):
        curve = trace(figure, name, axis)
        assert tuple(curve.x) == RANKS
        expected = [np.mean([value(row) for row in rows_of("rcr", rank=rank).values()]) for rank in RANKS]
        assert list(curve.y) == pytest.approx(expected)


def test_the_controller_against_its_identity(figures):
    figure = figures["controller"]
    for update in ("layer", "step"):
        rows = rows_of("rcr", update=update)
        marks = trace(figure, f"update={update}")
        for x, y, (key, sample) in zip(marks.x, marks.y, marks.customdata, strict=True):
            assert (x, y, key) == (rows[sample].identity_rate, rows[sample].refresh_rate, rows[sample].key)
        assert len(marks.x) == 40


def test_sweeps_compare_on_the_images_that_all_settings_have():
    rows = [row for row in ROWS if row.settings["tau0"] != 0.15 or row.sample < "scene-025"]
    (evidence,) = evidence_of(rows)
    curve = trace(STUDY_FIGURES["thresholds"](evidence), "Fixed threshold")
    first = [row.fidelity for sample, row in rows_of("threshold").items() if sample < "scene-025"]
    assert curve.y[TAU0.index(0.03)] == pytest.approx(np.mean(first))
    assert "25 images" in curve.hovertext[0]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_nothing_is_drawn_from_nothing(name):
    assert STUDY_FIGURES[name](Evidence("model", "float32", "c0ffee", "data", (), {})) is None
    assert study_figure_json(name, Evidence("model", "float32", "c0ffee", "data", (), {})) is None


def test_only_what_the_rows_can_tell_is_drawn():
    (full,) = evidence_of([row for row in ROWS if row.policy == "full"])
    assert {name for name, draw in STUDY_FIGURES.items() if draw(full)} == {"layers"}
    (main,) = evidence_of(made_rows(8, sweeps=False))
    missing = {"thresholds", "rates", "budgets", "grid", "detector"}
    assert {name for name, draw in STUDY_FIGURES.items() if draw(main)} == NAMES - missing


def test_fidelity_is_drawn_on_common_images_or_says_that_it_is_not():
    rows = [row for row in made_rows(12, sweeps=False) if row.policy != "rcr" or row.sample != "scene-003"]
    (evidence,) = evidence_of(rows)
    figure = STUDY_FIGURES["fidelity"](evidence)
    assert all("11 images" in one.hovertext[0] for one in figure.data)
    bacon = [row.fidelity for row in rows if row.policy == "bacon" and row.sample != "scene-003"]
    assert trace(figure, "BACON").x[0] == pytest.approx(np.mean(bacon))
    assert "not yet the same" not in figure.layout.meta["caption"]
    (few,) = evidence_of([row for row in rows if row.sample < "scene-006"])
    assert "not yet the same for all" in STUDY_FIGURES["fidelity"](few).layout.meta["caption"]


def test_captions_tell_ties_and_no_correlation_that_there_is_not():
    (evidence,) = evidence_of([replace(row, fidelity=1.0) for row in made_rows(6, sweeps=False)])
    assert "0 of 6 images, and as near in 6." in STUDY_FIGURES["images"](evidence).layout.meta["caption"]
    assert "Spearman" not in STUDY_FIGURES["gap"](evidence).layout.meta["caption"]


def test_one_image_has_no_interval():
    (evidence,) = evidence_of(made_rows(1, sweeps=False))
    for one in STUDY_FIGURES["fidelity"](evidence).data:
        assert one.error_x.array[0] is None
        assert "1 image" in one.hovertext[0]
        assert "[" not in one.hovertext[0]


def fonts(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fonts(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from fonts(inner, path)
    elif "font" in path:
        yield path


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_json_is_plain_and_fixes_no_colour_of_a_text_or_ground(name, evidence):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    figure = json.loads(study_figure_json(name, evidence), parse_constant=refuse)
    layout = figure["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0, 0, 0, 0)"
    assert not list(fonts(layout))


def test_markup_in_names_stays_text():
    rows = [replace(row, sample=f"<b onclick=x>{row.sample}") for row in made_rows(6, sweeps=False)]
    (evidence,) = evidence_of(rows)
    for name in ("images", "gap", "controller"):
        (marks,) = STUDY_FIGURES[name](evidence).data
        for text in marks.hovertext:
            assert "&lt;b onclick=x&gt;scene" in text
            assert "<b onclick" not in text
    unknown = [replace(row, policy="<i>x</i>") for row in made_rows(6) if row.policy == "quest"]
    (evidence,) = evidence_of(unknown)
    drawn = [STUDY_FIGURES[name](evidence) for name in ("fidelity", "budgets")]
    assert drawn[0].data[0].y[0] == "&lt;i&gt;x&lt;/i&gt;"
    assert drawn[1].layout.annotations[0].text == "&lt;i&gt;x&lt;/i&gt;"


def test_an_unknown_figure_is_refused_with_the_known_ones(evidence):
    with pytest.raises(ScopeError) as caught:
        study_figure_json("pie", evidence)
    assert caught.value.message == "there is no figure 'pie'"
    assert "fidelity, pareto" in caught.value.hint
