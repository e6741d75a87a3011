"""The package's softmaxes equal full-size, loop-by-loop ones."""

import numpy as np
import pytest
import torch

from rcr_core.attention_math import (
    attend_slots,
    evicted_mass,
    logits_of,
    merge_heads,
    scaled_query,
    top_sorted,
    window_attention,
)
from tests.core.references import Case, merged, softmax, top, window_rows


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("window", [1, 6, 20])
def test_window_attention_is_the_last_rows_of_a_causal_softmax(window, groups):
    case = Case.random(groups=groups, length=20)
    keys = torch.from_numpy(case.keys).float()[None]
    got = window_attention(case.query(), keys, window, case.scale)
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got.numpy(), window_rows(case, window), atol=1e-6)


def test_window_attention_needs_the_last_rows_of_the_queries_only():
    case = Case.random(length=20)
    keys = torch.from_numpy(case.keys).float()[None]
    whole = window_attention(case.query(), keys, 5, case.scale)
    assert torch.equal(whole, window_attention(case.query()[:, :, -5:], keys, 5, case.scale))


def test_nothing_ahead_of_a_query_gets_attention_and_rows_sum_to_one():
    case = Case.random(length=12)
    got = window_attention(case.query(), torch.from_numpy(case.keys).float()[None], 4, case.scale)
    for row in range(4):
        assert (got[:, :, row, 8 + row + 1 :] == 0).all()
    np.testing.assert_allclose(got.sum(-1).numpy(), 1.0, atol=1e-6)


def bfloat_case() -> tuple[Case, torch.Tensor, torch.Tensor]:
    """A case whose numbers bfloat16 represents exactly, and its query and key in bfloat16."""
    case = Case.random(length=20, depth=16, sharp=4.0)
    query, key = case.query().bfloat16(), torch.from_numpy(case.keys).bfloat16()[None]
    case.queries[:] = query.double().view(case.queries.shape).numpy()
    case.keys[:] = key[0].double().numpy()
    return case, query, key


def test_window_attention_of_bfloat16_is_a_float32_softmax():
    case, query, key = bfloat_case()
    got = window_attention(query, key, 6, case.scale)
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got.sum(-1).numpy(), 1.0, atol=1e-6)
    assert got.unique().numel() > 400  # of 420: probabilities rounded to bfloat16 would coincide


def test_window_attention_of_bfloat16_keeps_its_logits_in_float32():
    case, query, key = bfloat_case()
    got = window_attention(query, key, 6, case.scale)
    np.testing.assert_allclose(got.numpy(), window_rows(case, 6), atol=1e-5)


def test_query_heads_are_grouped_by_their_kv_head():
    query = torch.arange(6.0).view(1, 6, 1, 1)
    assert scaled_query(query, 2, 0.5)[..., 0].tolist() == [[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]]
    assert scaled_query(query.bfloat16(), 2, 0.5).dtype == torch.float32


def test_logits_are_dot_products_in_float32():
    query, keys = drawn(2, 3, 8), drawn(2, 5, 8, seed=1).bfloat16()
    got = logits_of(query, keys)
    assert got.dtype == torch.float32
    for h, g, x in np.ndindex(2, 3, 5):
        expected = sum(float(query[h, g, d]) * float(keys[h, x, d]) for d in range(8))
        assert got[h, g, x].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("how", ["mean", "max"])
def test_query_heads_merge_by_mean_or_max(how):
    probability = drawn(2, 3, 7).softmax(-1)
    expected = [merged(probability[h].double().numpy(), how) for h in range(2)]
    np.testing.assert_allclose(merge_heads(probability, how).numpy(), expected, atol=1e-7)


def test_evicted_mass_is_what_lies_on_unkept_prefix_entries():
    probability = drawn(3, 20).softmax(-1)
    selected = torch.tensor([[0, 4, 13], [1, 2, 3], [5, 6, 11]])
    total = 0.0
    for h in range(3):
        for i in range(14):
            if i not in selected[h].tolist():
                total += float(probability[h, i])
    assert evicted_mass(probability, selected, 14).item() == pytest.approx(total / 3, abs=1e-6)


def test_evicted_mass_of_summed_query_heads_is_their_mean():
    probability = drawn(3, 4, 20).softmax(-1)
    selected = torch.tensor([[0, 4, 13], [1, 2, 3], [5, 6, 11]])
    mean = evicted_mass(probability.mean(1), selected, 14).item()
    assert evicted_mass(probability.sum(1), selected, 14, 4).item() == pytest.approx(mean, abs=1e-6)


def test_evicted_mass_is_zero_where_all_is_kept():
    selected = torch.arange(9).expand(2, 9)
    assert evicted_mass(drawn(2, 15).softmax(-1), selected, 9).item() == pytest.approx(0.0, abs=1e-6)


def test_evicted_mass_never_leaves_the_unit_interval():
    selected = torch.tensor([[0, 1, 2]] * 2)
    for seed in range(200):
        logits = drawn(2, 2, 200, seed=seed)
        logits[..., :3] = logits[..., 190:] = -60.0
        drift = evicted_mass(logits.softmax(-1).mean(1), selected, 190).item()
        assert 0.999 < drift <= 1.0


def test_attention_over_slots_is_a_weighted_sum_in_the_dtype_of_the_values():
    logits, values = drawn(2, 3, 6), drawn(2, 6, 4, seed=1)
    got = attend_slots(logits.softmax(-1), values)
    for h, g in np.ndindex(2, 3):
        weights = softmax(logits[h, g].numpy())
        expected = sum(weights[j] * values[h, j].double().numpy() for j in range(6))
        np.testing.assert_allclose(got[h, g].numpy(), expected, atol=1e-6)
    assert attend_slots(logits, values.bfloat16()).dtype == torch.bfloat16


def test_the_top_comes_in_ascending_order_of_index():
    score = drawn(3, 30)
    assert top_sorted(score, 7).tolist() == [top(row.tolist(), 7) for row in score]


def test_ties_go_to_the_lower_index():
    score = torch.zeros(2, 300)
    score[:, 200] = 1.0
    assert top_sorted(score, 4).tolist() == [[0, 1, 2, 200]] * 2


def test_pinned_scores_come_first_and_banned_ones_last():
    score = torch.tensor([[torch.inf, 1.0, -torch.inf, torch.inf, 2.0]])
    assert [top_sorted(score, count).tolist() for count in (1, 3, 4)] == [[[0]], [[0, 3, 4]], [[0, 1, 3, 4]]]
