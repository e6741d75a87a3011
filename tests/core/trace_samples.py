"""A small trace made by hand, and its bytes taken apart: what the tests of trace files share."""

import io
import json
import struct

import numpy as np
from PIL import Image

from rcr_core.trace import PromptPiece, Trace, TraceMeta, trace_bytes

PNG = bytes.fromhex(  # one grey pixel
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a49444154789c63680000008200817775f2c40000000049454e44ae426082"
)
F32, I32, U8, U16 = np.float32, np.int32, np.uint8, np.uint16


def small_meta(**changes) -> TraceMeta:
    """Three tokens of a model with L=2, H=2, G=2; a prompt of T=8 with W=2, of which 4 tokens are visual."""
    values = {
        "model": "tiny",
        "family": "llava",
        "processor": "TinyProcessor",
        "prompt": "Describe.",
        "prompt_pieces": [PromptPiece("<image>", 0, 4, "image"), PromptPiece("Dé", 4, 1, "text")],
        "policy": "rcr",
        "settings": {"select": 2, "tau0": 0.03, "defer": False, "list": [1, 2.5, None]},
        "edits": [{"kind": "force", "step": 1, "layer": 0}],
        "image_size": [(30, 40)],
        "prompt_length": 8,
        "prefix_length": 6,
        "window": 2,
        "layers": 2,
        "kv_heads": 2,
        "query_groups": 2,
        "head_dim": 4,
        "select": 2,
        "managed": [False, True],
        "token_text": ["A", None, " 猫"],
        "top_text": [["A", " b", "\ufffd"], ["\ufffd", " b", "c"], [" 猫", "<|im_end|>", ""]],
        "scene": {"seed": 9001, "grid": 5, "count": 4},
        "stop_reason": "length",
        "dtype": "float32",
        "notes": ["a note"],
        "timings": {"prefill": 0.5, "steps": [0.25, 0.125], "load": 2},
        "versions": {"numpy": "2"},
    }
    return TraceMeta(**{**values, **changes})


def small_arrays() -> dict[str, np.ndarray]:
    return {
        "tokens": np.array([5, 6, 7], I32),
        "logprob": np.array([-0.1, -0.2, -0.3], F32),
        "top_ids": np.array([[5, 1, 2], [6, 1, 2], [7, 1, 2]], I32),
        "top_logprob": np.full((3, 3), -1.5, F32),
        "drift": np.array([[0, 0], [0, 0.25], [0, 0.5]], F32),
        "tau": np.array([[0, 0], [0, 0.03], [0, 0.04]], F32),
        "fire": np.array([[0, 0], [0, 1], [0, 0]], U8),
        "selected": np.array([[[0, 1], [2, 3]], [[5, 4], [2, 3]]], U16),
        "selected_row": np.array([[-1, 0], [-1, 1], [-1, 1]], I32),
        "mass": np.arange(24, dtype=F32).reshape(3, 2, 4) / 24,
        "map_mean": np.arange(12, dtype=U8).reshape(3, 4),
        "map_mean_scale": np.array([1, 2, 3], F32),
        "map_layer": np.arange(24, dtype=U8).reshape(3, 2, 4),
        "map_layer_scale": np.ones((3, 2), F32),
        "missed_layer": np.arange(24, 48, dtype=U8).reshape(3, 2, 4),
        "missed_layer_scale": np.full((3, 2), 0.5, F32),
        "patch_box": np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1], [np.nan] * 4, [0, 0, 1, 1]], F32),
        "patch_position": np.array([0, 1, 2, 3], I32),
        "patch_image": np.zeros(4, I32),
        "patch_frame": np.zeros(4, I32),
        "patch_level": np.array([1, 1, 1, 0], I32),
        "image": np.frombuffer(PNG, U8),
    }


DIAGNOSTICS = {
    "missed": np.full((3, 2), 0.05, F32),
    "drift_exact": np.full((3, 2), 0.1, F32),
    "recall": np.full((3, 2), 0.9, F32),
    "map_full": np.arange(24, dtype=U8).reshape(3, 2, 4),
    "map_full_scale": np.ones((3, 2), F32),
    "top_position": np.arange(24, dtype=I32).reshape(3, 2, 4) % 6,
}


def png(width: int, height: int) -> bytes:
    """A picture that no other of these has the size of."""
    file = io.BytesIO()
    Image.new("L", (width, height), width + height).save(file, "PNG")
    return file.getvalue()


PICTURES = (png(3, 2), png(40, 30), PNG)


def several(pictures: tuple[bytes, ...] = PICTURES, ends: list[int] | None = None) -> Trace:
    """A trace of three pictures of different sizes; the second has two of the four visual tokens."""
    where = np.cumsum([len(picture) for picture in pictures]) if ends is None else ends
    return small_trace(
        meta=small_meta(image_size=[(2, 3), (30, 40), (1, 1)], scene=None),
        patch_image=np.array([0, 1, 1, 2], I32),
        image=np.frombuffer(b"".join(pictures), U8),
        image_end=np.asarray(where, I32),
    )


HEADS = {
    "map_head": np.arange(48, dtype=U8).reshape(3, 2, 2, 4),
    "map_head_scale": np.full((3, 2, 2), 0.25, F32),
}


def small_trace(**changes) -> Trace:
    return Trace(**{"meta": small_meta(), **small_arrays(), **changes})


def assert_equal(left: Trace, right: Trace) -> None:
    assert left.meta == right.meta
    assert left.arrays().keys() == right.arrays().keys()
    for name, value in left.arrays().items():
        assert value.dtype == right.arrays()[name].dtype
        np.testing.assert_array_equal(value, right.arrays()[name], err_msg=name)


def split(data: bytes) -> tuple[dict, bytes]:
    """Header and body of a safetensors file, by hand."""
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join(header: dict | bytes, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def with_meta(**changes) -> bytes:
    """A file whose metadata is changed behind the writer's back; None removes a field."""
    header, body = split(trace_bytes(small_trace()))
    meta = {**json.loads(header["__metadata__"]["meta"]), **changes}
    header["__metadata__"]["meta"] = json.dumps(
        {key: value for key, value in meta.items() if value is not None}
    )
    return join(header, body)


def with_entry(name: str, **changes) -> bytes:
    header, body = split(trace_bytes(small_trace()))
    header[name].update(changes)
    return join(header, body)


def with_value(name: str, at: int, packed: bytes) -> bytes:
    """A file with some bytes of one array overwritten."""
    header, body = split(trace_bytes(small_trace(**DIAGNOSTICS, **HEADS)))
    begin = header[name]["data_offsets"][0] + at
    return join(header, body[:begin] + packed + body[begin + len(packed) :])
