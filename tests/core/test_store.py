"""A store lays out [selected | window | generated], keeps the prefix aside, and reports its lengths."""

import numpy as np
import pytest
import torch

from rcr_core.cache.store import KVStore
from tests.core.references import Case

WINDOW, LENGTH = 6, 20
PICKED = [[0, 3, 13], [1, 2, 7]]


def compacted(case: Case, room: int = 6, dtype=torch.float32) -> KVStore:
    store = KVStore(room)
    store.update(torch.from_numpy(case.keys).to(dtype)[None], torch.from_numpy(case.values).to(dtype)[None])
    store.compact(torch.tensor(PICKED), WINDOW)
    return store


def kept_whole(case: Case, room: int = 6) -> KVStore:
    store = KVStore(room)
    case.fill(store)
    store.keep_all(WINDOW)
    return store


@pytest.fixture
def case() -> Case:
    return Case.random(length=LENGTH)


def rows(array: np.ndarray, picked=PICKED) -> np.ndarray:
    """Picked prefix rows and then the window of each head."""
    return np.stack([array[h, [*picked[h], *range(LENGTH - WINDOW, LENGTH)]] for h in range(2)])


def test_the_prompt_is_handed_back_as_it_came(case):
    store = KVStore(3)
    keys, values = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    got = store.update(keys, values)
    assert got[0] is keys and got[1] is values
    assert store.is_initialized and not store.ready and not store.whole
    assert store.get_seq_length() == 5


def test_slots_are_selected_then_window(case):
    store = compacted(case)
    np.testing.assert_array_equal(store.live_keys().numpy(), rows(case.keys))
    np.testing.assert_array_equal(store.live_values().numpy(), rows(case.values))
    assert (store.ready, store.whole, store.prefix) == (True, False, LENGTH - WINDOW)
    assert store.selected.tolist() == PICKED
    assert store.prompt_k is None and store.prompt_v is None


def test_the_prefix_stands_aside_complete(case):
    store = compacted(case)
    np.testing.assert_array_equal(store.prefix_k.numpy(), case.keys[:, :-WINDOW])
    np.testing.assert_array_equal(store.prefix_v.numpy(), case.values[:, :-WINDOW])


def test_generated_tokens_are_appended_behind_the_window(case):
    store = compacted(case)
    for at in range(3):
        keys, values = store.update(
            torch.from_numpy(case.next_keys[at]).float()[None, :, None],
            torch.from_numpy(case.next_values[at]).float()[None, :, None],
        )
    added = np.moveaxis(case.next_keys[:3], 0, 1)
    np.testing.assert_array_equal(keys[0].numpy(), np.concatenate((rows(case.keys), added), axis=1))
    added = np.moveaxis(case.next_values[:3], 0, 1)
    np.testing.assert_array_equal(values[0].numpy(), np.concatenate((rows(case.values), added), axis=1))
    assert torch.equal(store.live_keys(), keys[0]) and torch.equal(store.live_values(), values[0])


def test_lengths_are_true_for_positions_and_live_for_masks(case):
    store = compacted(case)
    assert (store.get_seq_length(), store.get_mask_sizes(1)) == (LENGTH, (3 + WINDOW + 1, 0))
    case.feed(store, 0)
    assert (store.get_seq_length(), store.get_mask_sizes(1)) == (LENGTH + 1, (3 + WINDOW + 2, 0))


def test_before_the_prefill_the_mask_covers_the_prompt():
    assert KVStore(3).get_mask_sizes(9) == (9, 0)


def test_another_selection_replaces_the_selected_slots_only(case):
    store = compacted(case)
    case.feed(store, 0)
    before = store.live_keys().clone(), store.live_values().clone()
    other = [[2, 3, 4], [0, 12, 13]]
    store.write(torch.tensor(other))
    assert store.selected.tolist() == other
    for got, old, array in zip(
        (store.live_keys(), store.live_values()), before, (case.keys, case.values), strict=True
    ):
        np.testing.assert_array_equal(got[:, :9].numpy(), rows(array, other))
        assert torch.equal(got[:, 3:], old[:, 3:])


def test_a_token_evicted_and_selected_again_is_unchanged(case):
    store = compacted(case)
    before = store.live_keys().clone()
    store.write(torch.tensor([[5, 6, 7], [8, 9, 10]]))
    store.write(torch.tensor(PICKED))
    assert torch.equal(store.live_keys(), before)


def test_candidate_keys_are_rows_of_the_prefix_in_the_order_asked(case):
    index = [[13, 0, 5, 5], [2, 9, 1, 0]]
    expected = np.stack([case.keys[h, index[h]] for h in range(2)])
    np.testing.assert_array_equal(compacted(case).candidate_keys(torch.tensor(index)).numpy(), expected)


def test_keeping_all_keeps_the_prompt_in_order(case):
    store = kept_whole(case)
    case.feed(store, 0)
    np.testing.assert_array_equal(store.live_keys()[:, :LENGTH].numpy(), case.keys)
    np.testing.assert_array_equal(store.live_values()[:, :LENGTH].numpy(), case.values)
    np.testing.assert_array_equal(store.prefix_k.numpy(), case.keys[:, :-WINDOW])
    np.testing.assert_array_equal(store.prefix_v.numpy(), case.values[:, :-WINDOW])
    assert (store.whole, store.selected, store.prefix) == (True, None, LENGTH - WINDOW)
    assert (store.get_seq_length(), store.get_mask_sizes(1)) == (LENGTH + 1, (LENGTH + 2, 0))


@pytest.mark.parametrize("dtype, width", [(torch.float32, 4), (torch.bfloat16, 2)])
def test_bytes_count_live_slots_and_the_prefix_aside(case, dtype, width):
    store = compacted(case, dtype=dtype)
    slot = 2 * 2 * 8 * width  # keys and values, heads, depth
    assert (store.resident_bytes, store.aside_bytes) == (9 * slot, 14 * slot)
    store.update(torch.zeros(1, 2, 1, 8, dtype=dtype), torch.zeros(1, 2, 1, 8, dtype=dtype))
    assert (store.resident_bytes, store.aside_bytes) == (10 * slot, 14 * slot)


def test_a_whole_prefix_has_nothing_aside(case):
    store = kept_whole(case)
    assert (store.resident_bytes, store.aside_bytes) == (LENGTH * 2 * 2 * 8 * 4, 0)


def test_the_store_keeps_the_dtype_of_the_prompt(case):
    store = compacted(case, dtype=torch.bfloat16)
    assert store.live_keys().dtype == store.live_values().dtype == store.prefix_k.dtype == torch.bfloat16


def test_a_token_that_finds_no_room_is_never_lost(case):
    """Either the store refuses it or it makes room; a token that silently vanishes corrupts the answer."""
    store = compacted(case, room=1)
    case.feed(store, 0)
    try:
        case.feed(store, 1)
    except (IndexError, RuntimeError, ValueError):
        return
    np.testing.assert_array_equal(store.live_keys()[:, -1].numpy(), case.next_keys[1])
