"""Offloading: the prefix of a layer in host memory, read row by row.

The device then holds live slots only, whatever the prompt's length. `masked` reads in every layer, so that no
step waits for the host; `delta` reads only entries that are not kept already, and has to know how many those
are before it can go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rcr_core.cache.store import KeysAtHand, KVStore, rows_of


class HostRows:
    """Rows [H, Np, D] in host memory, pinned where the device is a GPU, which then reads them in place."""

    def __init__(self, rows: Tensor):
        self.host = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=rows.is_cuda)
        for to, of in zip(self.host, rows, strict=True):  # head by head: a strided copy would double them
            to.copy_(of, non_blocking=True)
        flat = self.host.view(-1, rows.shape[-1])
        self._mapped = _seen_from(rows.device, flat)

    @property
    def in_place(self) -> bool:
        """Whether the device reads the rows where they lie; else the host gathers them for it."""
        return self._mapped is not None

    def read(self, flat: Tensor) -> Tensor:
        """Rows by head * Np + index: int64 [X] -> [X, D] on the device of `flat`."""
        if self._mapped is not None:
            return self._mapped.index_select(0, flat)
        rows = self.host.view(-1, self.host.shape[-1]).index_select(0, flat.to("cpu"))
        return rows.to(flat.device)


class OffloadedStore(KVStore):
    """A store whose prefix lies in host memory once the prompt was taken apart.

    asked, fetched: vectors (of all KV heads) that the present step asked of the prefix, and those that it
    read. delta: read only what is not kept.
    """

    def __init__(self, room: int, delta: bool):
        super().__init__(room)
        self.delta = delta
        self.asked = self.fetched = 0

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        self.asked = self.fetched = 0
        return super().update(key_states, value_states)

    def _put_aside(self) -> None:
        self._key_rows, self._value_rows = HostRows(self.prefix_k), HostRows(self.prefix_v)
        self.prefix_k, self.prefix_v = self._key_rows.host, self._value_rows.host

    def write(self, selected: Tensor, at_hand: KeysAtHand | None = None) -> None:
        count = selected.shape[1]
        wanted = self._wanted(selected)
        values = self._read(self._value_rows, self.values, wanted)
        if at_hand is None:
            keys = self._read(self._key_rows, self.keys, wanted)
        else:
            kept, slot = self._kept(selected)
            keys = torch.where(kept.unsqueeze(-1), rows_of(self.keys[0], slot), at_hand.of(selected))
        self.keys[0, :, :count], self.values[0, :, :count] = keys, values
        self.selected = selected

    def candidate_keys(self, index: Tensor) -> Tensor:
        return self._read(self._key_rows, self.keys, self._wanted(index))

    def scan(self, counted: bool = True) -> Tensor:
        if counted:
            self.asked += self.prefix_k[..., 0].numel()
            self.fetched += self.prefix_k[..., 0].numel()
        return self.prefix_k.to(self.keys.device, non_blocking=True)

    @property
    def held_bytes(self) -> int:
        """Bytes on the device, as of any store, but for a prefix that is in host memory."""
        return super().held_bytes - self.aside_bytes

    def _kept(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Which entries are in a slot, and in which: index [H, X] -> bool [H, X], int64 [H, X]."""
        slot = torch.searchsorted(self.selected, index).clamp_(max=self.selected.shape[1] - 1)
        return self.selected.gather(1, slot) == index, slot

    def _wanted(self, index: Tensor) -> _Wanted:
        """index [H, X]. With `delta` it waits for the host, which has to know how many rows it gathers."""
        flat = (index + self._offset).view(-1)
        if not self.delta:
            return _Wanted(index, flat)
        kept, slot = self._kept(index)
        return _Wanted(index, flat, slot, (~kept).view(-1).nonzero()[:, 0])

    def _read(self, rows: HostRows, slots: Tensor, wanted: _Wanted) -> Tensor:
        """Rows of prefix entries, for all heads at once: [H, X, D]."""
        self.asked += wanted.flat.numel()
        shape = (*wanted.index.shape, -1)
        if wanted.missing is None:
            self.fetched += wanted.flat.numel()
            return rows.read(wanted.flat).view(shape)
        self.fetched += wanted.missing.numel()
        found = rows_of(slots[0], wanted.slot).flatten(0, 1)
        fetched = rows.read(wanted.flat[wanted.missing])
        return found.index_copy_(0, wanted.missing, fetched).view(shape)


@dataclass(frozen=True)
class _Wanted:
    """Prefix entries [H, X] of every head, and head by head in one row of the host's rows (flat [H * X]).

    slot [H, X]: where those that are kept are; missing: which of `flat` are not, None where all are read.
    """

    index: Tensor
    flat: Tensor
    slot: Tensor | None = None
    missing: Tensor | None = None


class _HostMemory:
    """Pinned host memory as the CUDA array interface describes it, by which a GPU reads it in place."""

    TYPES = {1: "|u1", 2: "<i2", 4: "<i4"}

    def __init__(self, rows: Tensor):
        self.__cuda_array_interface__ = {
            "shape": tuple(rows.shape),
            "typestr": self.TYPES[rows.element_size()],
            "data": (rows.data_ptr(), False),
            "version": 3,
        }


def _seen_from(device: torch.device, rows: Tensor) -> Tensor | None:
    """The same memory as a tensor of `device`; None where that device cannot read host memory in place."""
    if device.type == "cpu":
        return rows
    if device.type != "cuda" or not rows.numel():
        return None
    seen = torch.as_tensor(_HostMemory(rows), device=device).view(rows.dtype)
    return seen if seen.data_ptr() == rows.data_ptr() else None  # pinned by way of another GPU: it was copied
