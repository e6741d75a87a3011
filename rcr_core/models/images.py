"""Open a picture from outside: sniffed by content, bounded before it is decoded, reduced to upright RGB."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
from PIL import Image

from rcr_core.errors import ImageError

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
MAX_BYTES = 64 << 20
MAX_PIXELS = 50_000_000
MIN_SIDE = 8
MAX_ASPECT = 100
USABLE = "use a PNG, JPEG, WebP, GIF or BMP picture"

_ORIENTATION = 0x0112  # the EXIF tag; its values 2 to 8 ask for these turns
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# What Pillow's decoders raise on damaged data; its documentation promises no single type.
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, struct.error)


def open_image(source: str | Path | bytes) -> Image.Image:
    """The picture in a file, or in the bytes of one, as upright RGB without metadata.

    EXIF orientation is applied, transparency is flattened on white, of an animation the first frame is taken.

    Raises `ImageError` where the file is missing, over 64 MB, no picture, or damaged, and where the picture
    has more than 50 megapixels, a side under 8 pixels or an aspect ratio over 100.
    """
    name, data = ("the image", source) if isinstance(source, bytes) else _read(source)
    if not data:
        raise ImageError(f"{name} is empty", USABLE)
    if len(data) > MAX_BYTES:
        raise ImageError(f"{name} is larger than {MAX_BYTES >> 20} MB", "save it smaller")
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_many_pixels(name) from error
    except _DAMAGE as error:  # UnidentifiedImageError is an OSError
        raise ImageError(f"{name} is not a picture that can be read", USABLE) from error
    _check_size(name, *image.size)
    try:
        image.load()
    except _DAMAGE as error:
        raise ImageError(f"{name} is damaged or cut off", "save or download it again") from error
    return _upright(image, _flatten(image))


def _read(source: str | Path) -> tuple[str, bytes]:
    path = Path(source)
    name = path.name or str(path)
    try:
        if path.is_dir():
            raise ImageError(f"{name} is a folder, not a picture", USABLE)
        if path.exists() and not path.is_file():
            raise ImageError(f"{name} is not a regular file", USABLE)
        with path.open("rb") as file:
            return name, file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ImageError(f"there is no file {source}", "check the path") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise ImageError(f"{name} cannot be opened: {error}", "check the path and its permissions") from error


def _check_size(name: str, width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise _too_many_pixels(name)
    if min(width, height) < MIN_SIDE:
        raise ImageError(
            f"{name} is too small: {width} x {height} pixels",
            f"both sides must be at least {MIN_SIDE} pixels",
        )
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise ImageError(
            f"{name} is too elongated: {width} x {height} pixels",
            f"the longer side may be at most {MAX_ASPECT} times the shorter",
        )


def _too_many_pixels(name: str) -> ImageError:
    return ImageError(f"{name} has more than {MAX_PIXELS // 1_000_000} megapixels", "scale it down")


def _flatten(image: Image.Image) -> Image.Image:
    """Opaque RGB pixels in a new image, which carries none of the metadata."""
    if image.mode.startswith("I"):  # 16-bit grey, which `convert` would clip at 255
        grey = np.asarray(image).astype(np.int64) >> 8
        image = Image.fromarray(grey.clip(0, 255).astype(np.uint8))
    flat = Image.new("RGB", image.size, "white")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        flat.paste(layer, mask=layer.getchannel("A"))
    else:
        flat.paste(image.convert("RGB"))
    return flat


def _upright(image: Image.Image, flat: Image.Image) -> Image.Image:
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION))
    except _DAMAGE:  # broken metadata is no reason to refuse sound pixels
        turn = None
    return flat if turn is None else flat.transpose(turn)
