"""The container of what goes over the wire: a safetensors file whose arrays a browser can lay views over.

    8 bytes   length of the header, little endian
    header    JSON: "__metadata__" {"format", "state"}, and an entry per array; padded so that the body starts
              at a multiple of 8
    body      the arrays, larger items first: each starts at a multiple of its item size

The library that writes such files keeps neither this order nor any other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from rcr_core.trace.schema import DTYPES

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_ALIGN = 8


def pack(form: str, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a container of the format `form`; its state is JSON."""
    header: dict[str, Any] = {"__metadata__": {"format": form, "state": _json(state)}}
    body, end = [], 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
        if array.nbytes:  # an empty array cannot be cast to bytes
            body.append(np.ascontiguousarray(array).data.cast("B"))
    text = _json(header).encode()
    text += b" " * (-len(text) % _ALIGN)
    return b"".join((struct.pack("<Q", len(text)), text, *body))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
