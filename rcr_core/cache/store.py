"""One layer's keys and values under a selection.

The prompt's K/V come in at prefill. After that the layer holds live slots only,

    [0:S) selected | [S:S+W) window | [S+W:n) generated,

while the prefix stands aside, complete. Keys carry their rotary positions, so slots need none; the store
reports the true length to the model (positions) and the live slots to the mask.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

from rcr_core.attention_math import logits_of


@dataclass(frozen=True, eq=False)
class KeysAtHand:
    """Keys [H, X, D] of the prefix entries `index` [H, X]; of all of them in order where that is None."""

    keys: Tensor
    index: Tensor | None = None

    def of(self, wanted: Tensor) -> Tensor:
        """Keys of the entries `wanted` [H, S]: [H, S, D]. Anything where an entry is not at hand."""
        if self.index is None:
            return rows_of(self.keys, wanted)
        same = wanted.unsqueeze(2) == self.index.unsqueeze(1)  # (H, S, X)
        return rows_of(self.keys, same.to(torch.uint8).argmax(-1))


class KVStore(CacheLayerMixin):
    """Keys and values of one layer; `room` is how many tokens may be generated."""

    is_sliding = False

    def __init__(self, room: int):
        super().__init__()
        self.room = room
        self.seen = 0  # true length: prompt and generated
        self.live = 0  # slots in use
        self.selected: Tensor | None = None  # (H, S), ascending; None while the whole prefix is kept
        self.ready = False  # the prompt was taken apart
        self.prompt_k: Tensor | None = None  # (1, H, T, D), during the prefill only
        self.prompt_v: Tensor | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        """Called by the model's attention. Returns views of the live slots, or the prompt at prefill."""
        self.seen += key_states.shape[-2]
        if not self.ready:
            self.prompt_k, self.prompt_v, self.is_initialized = key_states, value_states, True
            return key_states, value_states
        at, self.live = self.live, self.live + key_states.shape[-2]
        if self.live > self.keys.shape[2]:
            raise IndexError(f"a store with room for {self.room} generated tokens was given more")
        self.keys[:, :, at : self.live] = key_states
        self.values[:, :, at : self.live] = value_states
        return self.keys[:, :, : self.live], self.values[:, :, : self.live]

    @property
    def whole(self) -> bool:
        """Whether the whole prefix is kept (nothing is evicted)."""
        return self.ready and self.selected is None

    @property
    def prefix(self) -> int:
        """Np."""
        return self.prefix_k.shape[1]

    def split(self, window: int) -> None:
        """Tell the prefix from the last `window` prompt tokens: `prefix_k` and `prefix_v` are [H, Np, D]."""
        length = self.prompt_k.shape[2]
        self.prefix_k = self.prompt_k[0, :, : length - window]
        self.prefix_v = self.prompt_v[0, :, : length - window]

    def compact(self, selected: Tensor, window: int) -> None:
        """Keep `selected` (int64 [H, S], ascending prefix indices) and the last `window` prompt tokens."""
        self.split(window)
        count = selected.shape[-1]
        self._allocate(count + window)
        for slots, prefix, prompt in (
            (self.keys, self.prefix_k, self.prompt_k),
            (self.values, self.prefix_v, self.prompt_v),
        ):
            slots[0, :, :count] = rows_of(prefix, selected)
            slots[:, :, count : count + window] = prompt[:, :, prompt.shape[2] - window :]
        self._offset = torch.arange(len(selected), device=selected.device)[:, None] * self.prefix
        self._put_aside()
        self._finish()
        self.selected = selected

    def _put_aside(self) -> None:
        """Where the prefix lies from now on: on the device, a key beside its value."""
        aside = torch.cat((self.prefix_k, self.prefix_v), dim=-1)  # (H, Np, 2D), fetched together
        depth = self.prefix_k.shape[-1]
        self.prefix_k, self.prefix_v = aside[..., :depth], aside[..., depth:]
        self._table = aside.view(-1, aside.shape[-1])
        self._key_table = self._table[:, :depth]

    def keep_all(self, window: int) -> None:
        """Keep the whole prompt; the prefix is then the first slots themselves."""
        length = self.prompt_k.shape[2]
        self._allocate(length)
        self.keys[:, :, :length] = self.prompt_k
        self.values[:, :, :length] = self.prompt_v
        self.prefix_k = self.keys[0, :, : length - window]
        self.prefix_v = self.values[0, :, : length - window]
        self._finish()

    def write(self, selected: Tensor, at_hand: KeysAtHand | None = None) -> None:
        """Put another selection (int64 [H, S], ascending) into the first S slots.

        at_hand: keys that were read to decide; a prefix on the device is read again for nothing.
        """
        heads, count = selected.shape
        flat = (selected + self._offset).view(-1)
        self._slots[0, :, :count] = self._rows(self._table, flat).view(heads, count, -1)
        self.selected = selected

    def candidate_keys(self, index: Tensor) -> Tensor:
        """Keys of prefix entries: index [H, C] -> [H, C, D]."""
        return self._rows(self._key_table, (index + self._offset).view(-1)).view(*index.shape, -1)

    def scan(self, counted: bool = True) -> Tensor:
        """All keys of the prefix: [H, Np, D]. counted: as reads of the policy (a diagnosis is none)."""
        return self.prefix_k

    def live_keys(self) -> Tensor:
        """[H, n, D]"""
        return self.keys[0, :, : self.live]

    def logits(self, query: Tensor) -> Tensor:
        """Exact logits of the live slots: scaled query [H, G, D] -> float32 [H, G, n]."""
        return logits_of(query, self.live_keys())

    def live_values(self) -> Tensor:
        """[H, n, D]"""
        return self.values[0, :, : self.live]

    @property
    def resident_bytes(self) -> int:
        """Bytes of the live slots that are in use."""
        return self.keys[:, :, : self.live].nbytes + self.values[:, :, : self.live].nbytes

    @property
    def aside_bytes(self) -> int:
        """Bytes of the prefix that stands aside, on the device or in host memory."""
        return self.prefix_k.nbytes + self.prefix_v.nbytes if self.selected is not None else 0

    @property
    def held_bytes(self) -> int:
        """Bytes of keys and values that this layer holds on the device: prompt, prefix, slots, room."""
        if not self.ready:
            return 0 if self.prompt_k is None else self.prompt_k.nbytes + self.prompt_v.nbytes
        return self.keys.nbytes + self.values.nbytes + self.aside_bytes

    def get_seq_length(self) -> int:
        return self.seen

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return (self.live if self.ready else self.seen) + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def _allocate(self, slots: int) -> None:
        _, heads, _, depth = self.prompt_k.shape
        width = depth + self.prompt_v.shape[-1]
        self._slots = self.prompt_k.new_empty(1, heads, slots + self.room, width)  # a key beside its value
        self.keys, self.values = self._slots[..., :depth], self._slots[..., depth:]
        self.live = slots

    def _finish(self) -> None:
        self.prompt_k = self.prompt_v = None
        self.ready = True

    @staticmethod
    def _rows(table: Tensor, flat: Tensor) -> Tensor:
        # One index_select of whole rows is several times faster than a gather with an expanded index.
        return table.index_select(0, flat)


def rows_of(rows: Tensor, index: Tensor) -> Tensor:
    """Rows of each head: rows [H, X, D], index [H, S] -> [H, S, D]."""
    return rows.gather(1, index.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))
