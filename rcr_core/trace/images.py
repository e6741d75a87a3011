"""The processed images in a trace: PNG files, one after another in one array of bytes."""

from __future__ import annotations

import numpy as np

from rcr_core.errors import TraceError

MAX_IMAGES = 256  # with a picture each
MAX_IMAGE_BYTES = (1 << 31) - 1  # their ends are i32
_PNG = b"\x89PNG\r\n\x1a\n"


def join_images(pictures: tuple[bytes, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    """The arrays `image` u8 [n] and `image_end` i32 [I] of PNG files; a single one has no `image_end`.

    Raises `TraceError` where they are too many or too large.
    """
    ends = np.cumsum([len(picture) for picture in pictures], dtype=np.int64)
    if len(pictures) > MAX_IMAGES or (ends > MAX_IMAGE_BYTES).any():
        raise TraceError(
            f"a trace holds at most {MAX_IMAGES} pictures of {MAX_IMAGE_BYTES:,} bytes in all",
            "use fewer or smaller images",
        )
    image = np.frombuffer(b"".join(pictures), np.uint8)
    return image, ends.astype(np.int32) if len(pictures) > 1 else None


def split_images(image: np.ndarray, image_end: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """The bytes of each PNG file as a view of `image`, u8; none where it is empty."""
    if not image.size:
        return ()
    ends = [image.size] if image_end is None else image_end.tolist()
    return tuple(image[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True))


def check_images(image: np.ndarray, image_end: np.ndarray | None) -> None:
    """Raises `TraceError` unless `image` is empty or consists of PNG files that end where it is said."""
    if image_end is not None:
        ends = [0, *image_end.tolist()]
        if len(image_end) > MAX_IMAGES:
            raise TraceError(f"image_end must have at most {MAX_IMAGES} entries, got {len(image_end)}")
        if ends[-1] != image.size or any(end <= begin for begin, end in zip(ends, ends[1:], strict=False)):
            raise TraceError(f"image_end must rise from above 0 to {image.size}, the bytes of image")
    for picture in split_images(image, image_end):
        if picture[: len(_PNG)].tobytes() != _PNG:
            raise TraceError("image must be a PNG file" + ("" if image_end is None else " for every image"))
