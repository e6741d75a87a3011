"""When the host or the accelerator has no memory left: recognised in one place, told in one way."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rcr_core.errors import MemoryLimitError

# What torch says where it has no type for it: on the CPU, of pinned memory, of a library of CUDA, on MPS.
_WORDS = (
    "DefaultCPUAllocator",
    "Cannot allocate memory",
    "can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "MPS backend out of memory",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one that caused it, is a refused allocation."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (MemoryError, torch.OutOfMemoryError)):
            return True
        if isinstance(cause, OSError) and cause.errno == errno.ENOMEM:
            return True
        if isinstance(cause, RuntimeError) and any(words in str(cause) for words in _WORDS):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


@contextmanager
def memory_guard() -> Iterator[None]:
    """Turn a refused allocation of a run into `MemoryLimitError`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryLimitError) or not is_out_of_memory(error):
            raise
        hint = "use a smaller image, fewer new tokens or a smaller dtype"
        raise MemoryLimitError("there is no memory left for this run", hint) from error
