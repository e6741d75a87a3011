"""Statistics of a study, against SciPy and against every resample there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from rcr_core.findings.statistics import (
    Bootstrap,
    difference,
    interval,
    ranks,
    spearman,
    terciles,
)


def scipy_interval(values: np.ndarray, seed: int):
    return stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=10_000,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval


def monte_carlo_error(values: np.ndarray) -> float:
    """Four standard errors of a 2.5 % quantile of 10,000 normal means, of two such estimates apart."""
    spread = values.std() / np.sqrt(len(values))
    density = stats.norm.pdf(stats.norm.ppf(0.025)) / spread
    return 4 * np.sqrt(2) * np.sqrt(0.025 * 0.975 / 10_000) / density


@pytest.mark.parametrize("count", [12, 50, 200])
def test_an_interval_is_scipys_percentile_interval(count):
    values = np.random.default_rng(count).beta(2, 3, count)
    ours, theirs, error = interval(values), scipy_interval(values, 99), monte_carlo_error(values)
    assert ours.mean == pytest.approx(values.mean())
    assert ours.count == count
    assert ours.low == pytest.approx(theirs.low, abs=error)
    assert ours.high == pytest.approx(theirs.high, abs=error)
    assert ours.high - ours.low > 10 * error  # so that the tolerance says something


def test_a_difference_is_paired():
    rng = np.random.default_rng(5)
    hard = rng.uniform(0, 0.8, 120)  # what both have in common
    values, others = hard + rng.normal(0.1, 0.02, 120), hard + rng.normal(0, 0.02, 120)
    ours = difference(values, others)
    theirs = stats.bootstrap(
        (values, others),
        lambda x, y, axis: (x - y).mean(axis),
        n_resamples=10_000,
        method="percentile",
        paired=True,
        vectorized=True,
        rng=rng,
    ).confidence_interval
    error = monte_carlo_error(values - others)
    assert ours.low == pytest.approx(theirs.low, abs=error)
    assert ours.high == pytest.approx(theirs.high, abs=error)
    unpaired = np.hypot(values.std(), others.std()) / np.sqrt(120)
    assert ours.high - ours.low < unpaired  # far narrower than 3.9 standard errors of unpaired means


def test_resamples_are_the_ones_that_there_are():
    values = np.array([0.0, 1.0, 5.0])
    every = [np.mean(drawn) for drawn in product(values, repeat=3)]  # 27, equally likely
    found = Bootstrap(3, resamples=200_000, seed=3).means(values)
    assert set(np.round(found, 9)) == set(np.round(every, 9))
    for mean in set(every):
        share = np.mean(np.isclose(every, mean))
        assert np.mean(np.isclose(found, mean)) == pytest.approx(share, abs=5 * np.sqrt(share / 200_000))


def test_resamples_are_seeded_and_the_same_for_every_quantity():
    values = np.random.default_rng(0).random((30, 2))
    both = Bootstrap(30, seed=1).means(values)
    assert both.shape == (10_000, 2)
    np.testing.assert_allclose(Bootstrap(30, seed=1).means(values[:, 1]), both[:, 1])
    assert not np.allclose(Bootstrap(30, seed=2).means(values[:, 1]), both[:, 1])
    assert interval(values[:, 0], seed=1) == interval(values[:, 0], seed=1)


def test_more_images_than_are_drawn_at_once():
    values = np.random.default_rng(0).random(3000)
    found = Bootstrap(3000, resamples=2000).means(values)
    error = values.std() / np.sqrt(3000)
    assert found.mean() == pytest.approx(values.mean(), abs=5 * error / np.sqrt(2000))
    assert found.std() == pytest.approx(error, rel=0.1)


def test_equal_values_have_no_width():
    found = interval([1.0] * 50)
    assert (found.mean, found.low, found.high) == (1.0, 1.0, 1.0)


def test_fewer_than_two_values_have_no_interval():
    one, none = interval([0.4]), interval([])
    assert one.mean == 0.4
    assert one.count == 1
    assert np.isnan([one.low, one.high, none.mean, none.low, none.high]).all()
    assert none.count == 0


def test_a_bootstrap_refuses_values_of_another_count():
    with pytest.raises(ValueError, match="expected 3 values, got 2"):
        Bootstrap(3).means(np.zeros(2))
    with pytest.raises(ValueError, match="nothing to draw"):
        Bootstrap(0).means(np.zeros(0))


def test_terciles_are_even_and_ordered():
    low, middle, high = terciles([5, 1, 4, 2, 3, 0, 6])
    assert (low.tolist(), middle.tolist(), high.tolist()) == ([5, 1, 3], [4, 2], [0, 6])


def test_terciles_of_equal_values_go_by_position():
    assert [third.tolist() for third in terciles([1, 1, 1, 1, 0, 1])] == [[4, 0], [1, 2], [3, 5]]


@pytest.mark.parametrize("seed", range(4))
def test_ranks_and_spearman_are_scipys_with_ties(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, 40)
    y = x + rng.integers(0, 8, 40)
    np.testing.assert_array_equal(ranks(x), stats.rankdata(x))
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_spearman_without_an_order_is_no_number():
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3]))
    assert np.isnan(spearman([1.0], [2.0]))
    assert np.isnan(spearman([], []))
