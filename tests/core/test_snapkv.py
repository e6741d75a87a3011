"""SnapKV scores by the window's mean attention, smoothed, and selects once."""

import numpy as np
import pytest
import torch

from rcr_core.cache.store import KVStore
from rcr_core.policies import make_policy
from rcr_core.policies.snapkv import pooled
from rcr_core.settings import Settings
from tests.core.references import Case, prompt_scores, top

WINDOW, SELECT = 6, 5


def scored(case: Case, how: str) -> np.ndarray:
    policy, store = make_policy("snapkv", Settings(select=SELECT, window=WINDOW, gqa=how)), KVStore(2)
    return policy.score(0, case.fill(store), store, case.scale, WINDOW).numpy()


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("groups", [1, 3])
def test_the_score_is_the_smoothed_mean_over_the_window(groups, how):
    case = Case.random(groups=groups)
    np.testing.assert_allclose(scored(case, how), prompt_scores(case, WINDOW, how)[0], atol=1e-5, rtol=1e-4)


def test_mean_and_max_over_query_heads_differ():
    case = Case.random(groups=3)
    assert np.abs(scored(case, "mean") - scored(case, "max")).max() > 1e-3


def test_zeros_beyond_the_ends_count_in_the_average():
    got = pooled(torch.tensor([[5.0, 0, 0, 0, 0, 0, 0, 10.0]]))
    np.testing.assert_allclose(got.numpy(), [[1, 1, 1, 0, 0, 2, 2, 2]])


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_best_scores_are_kept_in_order_of_index(seed, how):
    case = Case.random(seed)
    policy, store = make_policy("snapkv", Settings(select=SELECT, window=WINDOW, gqa=how)), KVStore(2)
    policy.prefill(0, case.fill(store), store, case.scale)
    base = prompt_scores(case, WINDOW, how)[0]
    assert store.selected.tolist() == [top(row, SELECT) for row in base]


def test_decoding_leaves_the_selection_alone_and_attends_to_the_live_slots():
    case = Case.random()
    policy, store = make_policy("snapkv", Settings(select=SELECT, window=WINDOW)), KVStore(6)
    policy.prefill(0, case.fill(store), store, case.scale)
    kept = store.selected.clone()
    for at in range(3):
        policy.begin_step(at + 1)
        query = case.feed(store, at)
        got = policy.decode(0, query, store, case.scale)
        keys, values = store.live_keys(), store.live_values()
        each = query.view(2, 2, 1, 8)
        expected = torch.nn.functional.scaled_dot_product_attention(each, keys[:, None], values[:, None])
        torch.testing.assert_close(got, expected[:, :, 0], atol=1e-5, rtol=0)
        assert torch.equal(store.selected, kept)


@pytest.mark.parametrize("length", [3, 6, 7, 11])
def test_a_prefix_that_fits_is_kept_whole(length):
    case = Case.random(length=length)
    policy, store = make_policy("snapkv", Settings(select=SELECT, window=WINDOW)), KVStore(2)
    policy.prefill(0, case.fill(store), store, case.scale)
    assert store.whole and store.prefix == max(length - WINDOW, 0)
    policy.begin_step(1)
    assert policy.decode(0, case.feed(store, 0), store, case.scale) is None


def test_one_prefix_entry_too_many_is_evicted():
    case = Case.random(length=12)
    policy, store = make_policy("snapkv", Settings(select=SELECT, window=WINDOW)), KVStore(2)
    policy.prefill(0, case.fill(store), store, case.scale)
    assert not store.whole and store.selected.shape == (2, SELECT)


def test_skipped_layers_keep_their_whole_prefix():
    policy = make_policy("snapkv", Settings(select=SELECT, window=WINDOW, skip_layers=2))
    stores = [KVStore(2) for _ in range(3)]
    for layer, store in enumerate(stores):
        case = Case.random(layer)
        policy.prefill(layer, case.fill(store), store, case.scale)
    assert [store.whole for store in stores] == [True, True, False]
