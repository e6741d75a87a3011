"""Pictures from outside: what is read, how it is made plain RGB, and every way of being refused."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rcr_core.errors import ImageError
from rcr_core.models import open_image

SIZE = (40, 24)  # width, height


def noise(mode: str = "RGB", size: tuple[int, int] = SIZE) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds next to no data."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0"))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "kind, options", [("PNG", {}), ("BMP", {}), ("WEBP", {"lossless": True}), ("GIF", {})]
)
def test_lossless_formats_keep_their_pixels(kind, options):
    source = noise("P") if kind == "GIF" else noise()
    opened = open_image(encoded(source, kind, **options))
    assert opened.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(opened), np.asarray(source.convert("RGB")))


def test_jpeg_is_read_by_content_under_any_name(tmp_path):
    flat = Image.new("RGB", SIZE, (200, 40, 90))
    path = tmp_path / "holiday.png"
    path.write_bytes(encoded(flat, "JPEG", quality=95))
    for source in (path, str(path), path.read_bytes()):
        assert np.abs(np.asarray(open_image(source)).astype(int) - (200, 40, 90)).max() <= 4


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_gives_its_first_frame(kind):
    frames = [Image.new("RGB", SIZE, colour) for colour in ((255, 0, 0), (0, 0, 255))]
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    red, green, blue = open_image(data).getpixel((5, 5))
    assert red > 240 and green < 15 and blue < 15


# The EXIF standard names the sides of the upright picture where the stored first row and first column lie;
# where they meet, the stored top left pixel must come out.
@pytest.mark.parametrize(
    "orientation, corner",
    [(1, "tl"), (2, "tr"), (3, "br"), (4, "bl"), (5, "tl"), (6, "tr"), (7, "br"), (8, "bl")],
)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_exif_orientation_is_applied(orientation, corner, kind):
    stored = np.zeros((24, 40, 3), dtype=np.uint8)
    stored[:8, :8] = 255  # the stored first rows and columns
    exif = Image.Exif()
    exif[0x0112] = orientation
    opened = np.asarray(open_image(encoded(Image.fromarray(stored), kind, exif=exif)))
    assert opened.shape[:2] == ((24, 40) if orientation < 5 else (40, 24))
    corners = {"tl": opened[2, 2], "tr": opened[2, -3], "bl": opened[-3, 2], "br": opened[-3, -3]}
    assert {name for name, pixel in corners.items() if pixel.min() > 200} == {corner}


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data:UserWarning")
def test_broken_exif_is_ignored():
    data = encoded(noise(), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert open_image(data).size == SIZE


def test_metadata_is_dropped():
    exif = Image.Exif()
    exif[0x010E] = "a secret"
    opened = open_image(encoded(noise(), "JPEG", exif=exif, comment=b"also secret", icc_profile=b"x" * 200))
    assert opened.info == {} and not dict(opened.getexif())


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparency_is_flattened_on_white(mode):
    clear = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    clear.paste((0, 0, 0, 255), (0, 0, 20, 24))
    clear.paste((0, 0, 0, 128), (0, 0, 10, 24))
    opened = open_image(encoded(clear.convert(mode), "PNG"))
    half, full, none = (opened.getpixel((x, 12)) for x in (5, 15, 30))
    assert full == (0, 0, 0) and none == (255, 255, 255)
    assert all(abs(value - 127) <= 1 for value in half)  # 255 * (1 - 128 / 255)


def test_a_transparent_palette_entry_is_flattened():
    picture = Image.new("P", SIZE, 1)
    picture.putpalette([0, 0, 0, 10, 20, 30] + [0] * 762)
    assert open_image(encoded(picture, "PNG", transparency=1)).getpixel((3, 3)) == (255, 255, 255)
    assert open_image(encoded(picture, "PNG")).getpixel((3, 3)) == (10, 20, 30)


def test_sixteen_bit_grey_is_scaled_not_clipped():
    ramp = np.linspace(0, 65535, 40).astype(np.uint16)[None].repeat(24, 0)
    opened = np.asarray(open_image(encoded(Image.fromarray(ramp), "PNG")))
    np.testing.assert_array_equal(opened[0, :, 0], ramp[0] >> 8)


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK"])
def test_other_modes_become_rgb(mode):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    opened = open_image(encoded(noise(mode), kind))
    assert opened.mode == "RGB" and opened.size == SIZE


REFUSED = {
    "empty": (b"", "empty"),
    "text": (b"not a picture at all, just words", "not a picture"),
    "pdf": (b"%PDF-1.7 " + b"0" * 200, "not a picture"),
    "tiff": (encoded(noise(), "TIFF"), "not a picture"),
    "svg": (b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', "not a picture"),
    "png header only": (encoded(noise(), "PNG")[:20], "not a picture"),
    "bomb": (png_header(100_000, 100_000), "megapixels"),
    "just over 50 megapixels": (png_header(7072, 7071), "megapixels"),
    "no pixels behind the header": (png_header(64, 64), "damaged"),
    "too small": (encoded(noise(size=(40, 7)), "PNG"), "too small"),
    "too elongated": (encoded(noise(size=(809, 8)), "PNG"), "too elongated"),
    **{
        f"truncated {kind}": (encoded(noise(), kind)[:-300], "damaged")
        for kind in ("PNG", "JPEG", "BMP", "GIF")
    },
    "truncated WEBP": (encoded(noise(), "WEBP")[:-300], "not a picture"),
}


@pytest.mark.parametrize("data, words", REFUSED.values(), ids=REFUSED)
def test_bad_data_is_refused_in_words(data, words):
    with pytest.raises(ImageError, match=words) as caught:
        open_image(data)
    assert caught.value.hint


def test_the_limits_themselves_are_allowed():
    assert open_image(encoded(noise(size=(8, 800)), "PNG")).size == (8, 800)


def test_a_file_over_the_byte_cap_is_refused(tmp_path):
    path = tmp_path / "huge.png"
    path.write_bytes(encoded(noise(), "PNG"))
    os.truncate(path, (64 << 20) + 1)  # sparse: costs no disk
    with pytest.raises(ImageError, match="huge.png is larger than 64 MB"):
        open_image(path)


@pytest.mark.parametrize(
    "source, words",
    [
        ("missing.png", "there is no file"),
        (".", "a folder"),
        ("/dev/zero", "not a regular file"),
        ("a\0b", "cannot"),
    ],
)
def test_paths_that_lead_nowhere_are_refused(source, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in (source, Path(source)):
        with pytest.raises(ImageError, match=words) as caught:
            open_image(given)
        assert caught.value.hint


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data:UserWarning", "ignore:Truncated File Read:UserWarning")
def test_damaged_bytes_never_raise_anything_else():
    """2,000 random edits of headers and bodies end in a picture or in an ImageError."""
    rng = np.random.default_rng(1)
    exif = Image.Exif()
    exif[0x0112] = 6
    seeds = [encoded(noise(), kind, exif=exif) for kind in ("PNG", "JPEG", "WEBP")]
    seeds += [encoded(noise(mode), "PNG") for mode in ("P", "RGBA", "1")] + [encoded(noise(), "GIF")]
    refused = 0
    for _ in range(2000):
        data = np.frombuffer(seeds[rng.integers(len(seeds))], dtype=np.uint8).copy()
        at = rng.integers(0, min(len(data), 150) if rng.random() < 0.6 else len(data), rng.integers(1, 6))
        data[at] = rng.integers(0, 256, len(at))
        try:
            assert open_image(data.tobytes()).mode == "RGB"
        except ImageError:
            refused += 1
    assert 200 < refused < 1900
