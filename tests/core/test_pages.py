"""Quest and ArkVale: page digests, page scores and the tokens that a ranking of pages yields."""

import numpy as np
import pytest
import torch

from rcr_core.cache.store import KVStore
from rcr_core.policies import make_policy
from rcr_core.policies.pages import PageDigest
from rcr_core.settings import Settings
from tests.core.references import Case, merged, page_corners, page_score, page_tokens, softmax, top

WINDOW, SELECT = 6, 8
KIND = pytest.mark.parametrize("kind", ["bounds", "cuboid_mean"])


def digest(kind: str, keys: np.ndarray, size: int) -> PageDigest:
    return getattr(PageDigest, kind)(torch.from_numpy(keys).float(), size)


@KIND
@pytest.mark.parametrize("size", [1, 4, 7, 34, 50])  # the last page of 34 tokens: 1, 2, 6, 34, 34
def test_corners_and_scores_follow_the_formula(kind, size):
    case = Case.random(length=34)
    query = case.next_queries[0]
    got = digest(kind, case.keys, size).scores(torch.from_numpy(query).float())
    assert got.shape == (2, 2, -(-34 // size))
    for h, g in np.ndindex(2, 2):
        expected = [page_score(query[h, g], *corner) for corner in page_corners(case.keys[h], size, kind)]
        np.testing.assert_allclose(got[h, g].numpy(), expected, atol=1e-4)


def test_a_page_by_hand():
    """Keys 1, 2, 6 in one channel: bounds 1 and 6; centre 3.5, mean distance (2.5 + 1.5 + 2.5) / 3."""
    keys = np.array([[[1.0], [2.0], [6.0], [-4.0]]])
    query = torch.tensor([[[1.0], [-1.0]]])
    assert digest("bounds", keys, 3).scores(query).tolist() == [[[6.0, -4.0], [-1.0, 4.0]]]
    width = 6.5 / 3
    expected = [[[3.5 + width, -4.0], [width - 3.5, 4.0]]]
    np.testing.assert_allclose(digest("cuboid_mean", keys, 3).scores(query).numpy(), expected, atol=1e-6)


def test_bounds_are_never_below_a_key_of_their_page():
    case = Case.random(length=34)
    query = case.next_queries[0]
    got = digest("bounds", case.keys, 5).scores(torch.from_numpy(query).float()).numpy()
    exact = np.einsum("hgd,hxd->hgx", query, case.keys)
    assert (got[..., np.arange(34) // 5] >= exact - 1e-5).all()


@KIND
def test_pages_of_one_token_score_the_exact_logit(kind):
    case = Case.random(length=34)
    query = case.next_queries[0]
    got = digest(kind, case.keys, 1).scores(torch.from_numpy(query).float())
    np.testing.assert_allclose(got.numpy(), np.einsum("hgd,hxd->hgx", query, case.keys), atol=1e-5)


@pytest.mark.parametrize("size, count", [(1, 8), (4, 8), (4, 6), (7, 8), (7, 30), (16, 8), (50, 8)])
def test_tokens_are_those_of_the_best_pages_until_the_budget_ends(size, count):
    keys = np.zeros((3, 34, 2))
    scores = torch.randn(3, -(-34 // size), generator=torch.Generator().manual_seed(size))
    got = digest("bounds", keys, size).tokens(scores, count)
    assert got.tolist() == [page_tokens(row.tolist(), size, 34, count) for row in scores]


def test_a_short_last_page_is_filled_up_from_the_next_best():
    scores = torch.tensor([[0.0, 1.0, 2.0]])  # pages of 4: 0-3, 4-7, 8-9
    assert digest("bounds", np.zeros((1, 10, 2)), 4).tokens(scores, 4).tolist() == [[4, 5, 8, 9]]


def test_pages_of_equal_score_come_in_order():
    assert digest("bounds", np.zeros((1, 10, 2)), 2).tokens(torch.zeros(1, 5), 4).tolist() == [[0, 1, 2, 3]]


def test_pins_come_first_and_bans_never():
    bias = torch.zeros(10)
    bias[0], bias[5] = float("inf"), float("-inf")
    scores = torch.tensor([[0.0, 1.0, 2.0]])
    got = digest("bounds", np.zeros((1, 10, 2)), 4).tokens(scores, 4, bias)
    assert got.tolist() == [[0, 4, 8, 9]]


def stepped(name: str, case: Case, **changes) -> list[list[list[int]]]:
    """Selections of a policy over all tokens of a case."""
    settings = Settings(**{"select": SELECT, "window": WINDOW, "page": 4, **changes})
    policy, store, selections = make_policy(name, settings), KVStore(9), []
    policy.prefill(0, case.fill(store), store, case.scale)
    for at in range(len(case.next_queries)):
        policy.begin_step(at + 1)
        output = policy.decode(0, case.feed(store, at), store, case.scale)
        selections.append(store.selected.tolist())
        check_attention(case, at, store, output)
    return selections


def check_attention(case: Case, at: int, store: KVStore, output: torch.Tensor):
    """Attention over the live slots is exact, whatever was selected."""
    tail_k, tail_v = case.tail(at, WINDOW)
    for h, g in np.ndindex(2, case.next_queries.shape[2]):
        kept = store.selected[h].tolist()
        keys = np.concatenate((case.keys[h, kept], tail_k[h]))
        values = np.concatenate((case.values[h, kept], tail_v[h]))
        weights = softmax(case.scale * (keys @ case.next_queries[at, h, g]))
        np.testing.assert_allclose(output[h, g].numpy(), weights @ values, atol=1e-5)


def page_rows(case: Case, at: int, h: int, size: int, kind: str) -> np.ndarray:
    """Scaled page scores of every query head of a KV head: (G, pages)."""
    corners = page_corners(case.keys[h, :-WINDOW], size, kind)
    queries = case.next_queries[at, h]
    return np.array([[case.scale * page_score(query, *corner) for corner in corners] for query in queries])


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("size", [4, 5, 8])
def test_quest_merges_the_softmax_over_pages_of_its_query_heads(size, how):
    case = Case.random(length=41)
    for at, got in enumerate(stepped("quest", case, page=size, gqa=how)):
        for h in range(2):
            rows = [softmax(row) for row in page_rows(case, at, h, size, "bounds")]
            assert got[h] == page_tokens(merged(rows, how), size, 35, SELECT)


def test_quest_with_pages_of_one_token_ranks_by_the_exact_logit():
    case = Case.random(groups=1)
    for at, got in enumerate(stepped("quest", case, page=1)):
        for h in range(2):
            assert got[h] == top(case.keys[h, :-WINDOW] @ case.next_queries[at, h, 0], SELECT)


@pytest.mark.parametrize("size", [4, 5])
def test_arkvale_takes_one_page_set_a_layer_by_the_mean_raw_score(size):
    case = Case.random(length=41)
    for at, got in enumerate(stepped("arkvale", case, page=size)):
        rows = np.concatenate([page_rows(case, at, h, size, "cuboid_mean") for h in range(2)])
        assert got == [page_tokens(rows.mean(0), size, 35, SELECT)] * 2


def test_arkvale_can_take_a_page_set_a_head():
    case = Case.random(length=41)
    got = stepped("arkvale", case, page_heads="head")
    for at, h in np.ndindex(len(got), 2):
        rows = page_rows(case, at, h, 4, "cuboid_mean")
        assert got[at][h] == page_tokens(rows.mean(0), 4, 35, SELECT)
    assert any(rows[0] != rows[1] for rows in got)
