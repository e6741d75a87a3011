"""BACON's calibrated score equals the formula, in both profiles and over several layers."""

import numpy as np
import pytest
import torch

from rcr_core.cache.store import KVStore
from rcr_core.policies import make_policy
from rcr_core.policies.bacon import PROFILES, calibrated
from rcr_core.settings import Settings
from tests.core.references import Case, bacon, prompt_scores, top

WINDOW, LAYERS = 6, 7
PROFILE = pytest.mark.parametrize("profile", ["paper", "release"])


def expected_scores(cases: list[Case], select: int, profile: str, how: str) -> list[np.ndarray]:
    before, scores = [], []
    for case in cases:
        base, evidence = prompt_scores(case, WINDOW, how)
        scores.append(bacon(base, evidence, before, select, profile))
        before.append(evidence)
    return scores


def drawn(select: int, profile: str, how: str, cases: list[Case]) -> tuple[list, list]:
    """Scores and selections of one policy over all layers in order."""
    settings = Settings(select=select, window=WINDOW, bacon=profile, gqa=how)
    scoring, policy = make_policy("bacon", settings), make_policy("bacon", settings)
    scores, selections = [], []
    for layer, case in enumerate(cases):
        store = KVStore(2)
        query = case.fill(store)
        scores.append(scoring.score(layer, query, store, case.scale, WINDOW).numpy())
        policy.prefill(layer, query, store, case.scale)
        selections.append(store.selected.tolist())
    return scores, selections


@PROFILE
@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("select", [3, 5, 20])  # at 20 the M = 2 select best are clamped to the 34 there are
def test_scores_and_selections_of_every_layer_follow_the_formula(select, how, profile):
    cases = [Case.random(seed, steps=1) for seed in range(LAYERS)]
    scores, selections = drawn(select, profile, how, cases)
    for got, expected in zip(scores, expected_scores(cases, select, profile, how), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-5, rtol=1e-4)
    wanted = expected_scores(cases, select, profile, how)
    assert selections == [[top(row, select) for row in layer] for layer in wanted]


def test_the_calibration_changes_what_is_kept():
    cases = [Case.random(seed, steps=1) for seed in range(LAYERS)]
    kept = {profile: drawn(5, profile, "mean", cases)[1] for profile in PROFILES}
    plain = [[top(row, 5) for row in prompt_scores(case, WINDOW)[0]] for case in cases]
    assert kept["paper"] != plain and kept["release"] != plain and kept["paper"] != kept["release"]


def arrays(*shape, seed=0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def check(base, evidence, before, select, profile):
    tensors = [torch.from_numpy(x).float() for x in (base, evidence)]
    got = calibrated(*tensors, [torch.from_numpy(x).float() for x in before], PROFILES[profile], select)
    np.testing.assert_allclose(got.numpy(), bacon(base, evidence, before, select, profile), atol=1e-5)


@PROFILE
@pytest.mark.parametrize("place", [0, 1, 4, 5, 15, 29])
def test_evidence_spreads_to_its_neighbours_and_is_averaged_rightly_at_the_ends(place, profile):
    evidence = np.zeros((2, 30))
    evidence[:, place] = 1.0
    check(arrays(2, 30), evidence, [], 4, profile)


def coherence(profile: str, place: int, length: int = 30) -> np.ndarray:
    """What a single evidence adds around its place, as a share of what it adds there (E + L)."""
    evidence = torch.zeros(1, length)
    evidence[0, place] = 1.0
    base = torch.from_numpy(arrays(1, length)).float()
    added = (calibrated(base, evidence, [], PROFILES[profile], length) - base)[0].numpy()
    return added / added[place]


def test_the_neighbourhood_of_the_paper_reaches_five_and_divides_by_the_true_count():
    spread = np.array([1 / 7, 1 / 8, 1 / 9, 1 / 10, 1 / 11, 0])
    np.testing.assert_allclose(coherence("paper", 0)[1:7], spread / (1 + 1 / 6), atol=1e-5)
    inner = np.array([0, *[1 / 11] * 5, 0])
    np.testing.assert_allclose(coherence("paper", 15)[15:22][1:], inner[1:] / (1 + 1 / 11), atol=1e-5)
    np.testing.assert_allclose(coherence("paper", 15)[9:15], inner[:6] / (1 + 1 / 11), atol=1e-5)


def test_the_neighbourhood_of_the_release_reaches_two_and_counts_zeros_at_the_ends():
    share = 0.2 / 1.2
    np.testing.assert_allclose(coherence("release", 0)[:4], [1, share, share, 0], atol=1e-5)
    inner = coherence("release", 15)[12:19]
    np.testing.assert_allclose(inner, [0, share, share, 1, share, share, 0], atol=1e-5)


@PROFILE
@pytest.mark.parametrize("layers", [0, 1, 2, 4])
def test_persistence_is_the_mean_evidence_of_the_layers_before(layers, profile):
    before = [arrays(2, 30, seed=9 + at) for at in range(layers)]
    check(arrays(2, 30), arrays(2, 30, seed=1), before, 4, profile)


@PROFILE
def test_no_evidence_leaves_the_score_as_it_was(profile):
    check(arrays(2, 30), np.zeros((2, 30)), [], 4, profile)
    base = torch.from_numpy(arrays(2, 30)).float()
    assert torch.equal(calibrated(base, torch.zeros(2, 30), [], PROFILES[profile], 4), base)


@pytest.mark.parametrize("size", [1e-4, 0.1, 100.0])
def test_the_release_shrinks_the_calibration_where_evidence_is_tiny(size):
    check(arrays(2, 30), size * arrays(2, 30, seed=1), [], 4, "release")


@PROFILE
@pytest.mark.parametrize("length", [6, 7, 8])
def test_more_best_entries_than_there_are_is_no_error(length, profile):
    check(arrays(2, length), arrays(2, length, seed=1), [], 4, profile)


def test_runs_do_not_share_evidence():
    case = Case.random(steps=1)
    first = drawn(5, "paper", "mean", [case])[0][0]
    drawn(5, "paper", "mean", [Case.random(1, steps=1), case])
    np.testing.assert_array_equal(drawn(5, "paper", "mean", [case])[0][0], first)
