"""Picture files of every kind that people drop on a page, good and bad."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 120, 80
_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100">'
    "<script>window.hit = parent.hit = 1</script><rect width='50' height='50'/></svg>"
)


def good_pictures(folder: Path) -> dict[str, tuple[Path, tuple[int, int]]]:
    """By kind: the file, and width and height as a person sees the picture."""
    picture = Image.effect_mandelbrot((WIDTH, HEIGHT), (-2, -1, 1, 1), 20)
    grey16 = np.arange(HEIGHT * WIDTH, dtype=np.uint16).reshape(HEIGHT, WIDTH) * 6
    turned = Image.Exif()
    turned[0x0112] = 6  # to be shown turned by a quarter
    saved = {
        "animated GIF": ("a.gif", picture.convert("P"), {"save_all": True, "append_images": [picture]}),
        "CMYK JPEG": ("cmyk.jpg", picture.convert("CMYK"), {}),
        "16-bit PNG": ("deep.png", Image.fromarray(grey16), {}),
        "palette with transparency": ("palette.png", picture.convert("P"), {"transparency": 0}),
        "EXIF rotation": ("turned.jpg", picture.convert("RGB"), {"exif": turned}),
        "markup as a name": ("<img src=x onerror=hit=1>.png", picture.convert("RGB"), {}),
    }
    found = {}
    for kind, (name, image, options) in saved.items():
        image.save(folder / name, **options)
        found[kind] = folder / name, (HEIGHT, WIDTH) if kind == "EXIF rotation" else (WIDTH, HEIGHT)
    return found


def bad_pictures(folder: Path) -> dict[str, Path]:
    """By kind: files that are refused."""
    written = {
        "SVG": ("drawing.svg", _SVG.encode()),
        "text": ("notes.png", b"I am no picture."),
        "empty": ("empty.png", b""),
        "cut off": ("cut.png", _noise()[:-3000]),
        "bomb": ("bomb.png", _png(20_000, 20_000)),
        "one pixel": ("one.png", _png(1, 1)),
        "elongated": ("wide.png", _png(4000, 10)),
    }
    for name, data in written.values():
        (folder / name).write_bytes(data)
    return {kind: folder / name for kind, (name, _) in written.items()}


def _noise() -> bytes:
    file = io.BytesIO()
    Image.effect_noise((64, 64), 80).save(file, "PNG")
    return file.getvalue()


def _png(width: int, height: int) -> bytes:
    """A black PNG of one bit a pixel, compressed row by row: 20,000 x 20,000 pixels take 50 kB."""
    packer = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", data), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
