"""InfiniGen's skew, partial channels and selections, and exact re-selection as what they tend to."""

import numpy as np
import pytest
import torch

from rcr_core.cache.store import KVStore
from rcr_core.edits import Edit, Gate
from rcr_core.policies import make_policy
from rcr_core.policies.infinigen import partial_channels, skew_of
from rcr_core.settings import Settings
from tests.core.references import Case, exact_selection, softmax, top

WINDOW, SELECT = 6, 5


def stacked(case: Case) -> np.ndarray:
    """The queries of the G query heads of each KV head, one below the other: (H, G*T, D)."""
    return case.queries.reshape(len(case.queries), -1, case.queries.shape[-1])


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array).float()


def test_the_skew_is_the_right_singular_vectors_strongest_first():
    queries = stacked(Case.random())
    skew = skew_of(tensor(queries)).double().numpy()
    for h in range(2):
        right = np.linalg.svd(queries[h])[2]
        np.testing.assert_allclose(np.abs(np.sum(right * skew[h].T, axis=1)), 1.0, atol=1e-4)


def test_the_skew_is_orthogonal_so_it_keeps_every_dot_product():
    case = Case.random()
    queries = stacked(case)
    skew = skew_of(tensor(queries)).double().numpy()
    for h in range(2):
        np.testing.assert_allclose(skew[h].T @ skew[h], np.eye(8), atol=1e-5)
        turned = (queries[h] @ skew[h]) @ (case.keys[h] @ skew[h]).T
        np.testing.assert_allclose(turned, queries[h] @ case.keys[h].T, atol=1e-4)


def channels_by_loop(queries: np.ndarray, skew: np.ndarray, count: int) -> np.ndarray:
    weight = [sum(abs(query @ skew[:, j]) for query in queries) for j in range(skew.shape[1])]
    return skew[:, top(weight, count)]


@pytest.mark.parametrize("count", [1, 3, 8, 50])
def test_the_channels_of_the_largest_sums_are_kept(count):
    queries = stacked(Case.random())
    skew = np.linalg.qr(np.random.default_rng(3).standard_normal((2, 8, 8)))[0]  # sums in no order
    got = partial_channels(tensor(queries), tensor(skew), count).numpy()
    for h in range(2):
        np.testing.assert_allclose(got[h], channels_by_loop(queries[h], skew[h], count), atol=1e-6)


def prefix_only(groups: int = 2) -> Case:
    """A case whose prefix holds all but nothing of the attention, whatever else a softmax runs over."""
    case = Case.random(groups=groups)
    case.queries[..., 0] = case.next_queries[..., 0] = 4.0
    case.keys[:, -WINDOW:, 0] = case.next_keys[..., 0] = -60.0
    return case


def selection_by_loop(case: Case, query: np.ndarray, channels: int) -> list[list[int]]:
    """Top S by the summed softmax of the partial logits. query (H, G, D)."""
    result, queries = [], stacked(case)
    for h in range(2):
        chosen = channels_by_loop(queries[h], np.linalg.svd(queries[h])[2].T, channels)
        score = 0
        for one in query[h]:
            score = score + softmax(case.scale * ((case.keys[h, :-WINDOW] @ chosen) @ (one @ chosen)))
        result.append(top(score, SELECT))
    return result


def prefilled(name: str, case: Case, gate: Gate | None = None, **changes):
    policy, store = make_policy(name, Settings(select=SELECT, window=WINDOW, **changes), gate), KVStore(9)
    policy.prefill(0, case.fill(store), store, case.scale)
    return policy, store


def decode(policy, store: KVStore, case: Case, at: int) -> torch.Tensor:
    policy.begin_step(at + 1)
    return policy.decode(0, case.feed(store, at), store, case.scale)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("channels", [1, 3, 7])
def test_without_a_guess_a_layer_scores_with_its_own_query(channels, groups):
    case = prefix_only(groups)
    policy, store = prefilled("infinigen", case, channels=channels)
    for at, query in enumerate(case.next_queries):
        decode(policy, store, case, at)
        assert store.selected.tolist() == selection_by_loop(case, query, channels)


def test_a_guess_scores_once_and_attention_stays_exact():
    case = prefix_only()
    policy, store = prefilled("infinigen", case, channels=3)
    policy.guess[0] = tensor(case.next_queries[5] * case.scale)
    output = decode(policy, store, case, 0)
    assert store.selected.tolist() == selection_by_loop(case, case.next_queries[5], 3)
    assert store.selected.tolist() != selection_by_loop(case, case.next_queries[0], 3)
    keys, values = store.live_keys().double().numpy(), store.live_values().double().numpy()
    for h, g in np.ndindex(2, 2):
        weights = softmax(case.scale * (keys[h] @ case.next_queries[0, h, g]))
        np.testing.assert_allclose(output[h, g].numpy(), weights @ values[h], atol=1e-5)
    decode(policy, store, case, 1)
    assert store.selected.tolist() == selection_by_loop(case, case.next_queries[1], 3)


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("groups", [1, 3])
def test_exact_reselection_takes_the_top_of_the_true_attention(groups, how):
    case = Case.random(groups=groups)
    policy, store = prefilled("exact", case, gqa=how)
    for at in range(len(case.next_queries)):
        output = decode(policy, store, case, at)
        assert store.selected.tolist() == exact_selection(case, at, WINDOW, SELECT, how)
        keys, values = store.live_keys().double().numpy(), store.live_values().double().numpy()
        for h, g in np.ndindex(2, groups):
            weights = softmax(case.scale * (keys[h] @ case.next_queries[at, h, g]))
            np.testing.assert_allclose(output[h, g].numpy(), weights @ values[h], atol=1e-5)


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_with_all_channels_and_its_own_query_it_selects_what_exact_reselection_does(groups, how):
    for seed in range(5):
        case = Case.random(seed, groups=groups)
        (partial, first), (exact, second) = (
            prefilled(name, case, channels=8, gqa=how) for name in ("infinigen", "exact")
        )
        for at in range(len(case.next_queries)):
            decode(partial, first, case, at)
            decode(exact, second, case, at)
            assert first.selected.tolist() == second.selected.tolist()


@pytest.mark.parametrize("name", ["infinigen", "exact", "quest", "arkvale"])
def test_a_held_layer_keeps_its_selection_for_that_step(name):
    case = Case.random()
    policy, store = prefilled(name, case, Gate((Edit("hold", 2),)), channels=3, page=2)
    decode(policy, store, case, 0)
    before = store.selected.clone()
    output = decode(policy, store, case, 1)
    assert torch.equal(store.selected, before)
    keys, values = store.live_keys().double().numpy(), store.live_values().double().numpy()
    weights = softmax(case.scale * (keys[1] @ case.next_queries[1, 1, 0]))
    np.testing.assert_allclose(output[1, 0].numpy(), weights @ values[1], atol=1e-5)
    decode(policy, store, case, 2)
    assert not torch.equal(store.selected, before)


@pytest.mark.parametrize("name", ["infinigen", "exact", "quest", "arkvale"])
def test_pins_stay_and_bans_leave_at_every_step(name):
    case = Case.random()
    gate = Gate((Edit("pin", 2, index=33), Edit("ban", 2, index=0)))
    policy, store = prefilled(name, case, gate, channels=3, page=2)
    for at in range(len(case.next_queries)):
        decode(policy, store, case, at)
        if at >= 1:
            assert all(33 in row and 0 not in row for row in store.selected.tolist())
