"""Images whose colours say where they are, so that boxes of visual tokens can be checked against pixels.

Red grows with x, green with y, blue is full wherever there is picture. So the mean colour of the pixels
behind a token, divided by its blue, is the centre of the part of the picture that the token saw, whatever the
processor did.
"""

import numpy as np
import pytest
import torch
from PIL import Image

# (height, width): square, wide and tall, exact and odd, smaller and larger than the processors' limits.
SIZES = [
    (96, 96),
    (64, 192),
    (192, 64),
    (48, 48),
    (33, 47),
    (97, 301),
    (301, 97),
    (600, 450),
    (450, 600),
    (20, 640),
    (640, 20),
    (251, 250),
]
TOLERANCE = 0.004  # of the image: 1/255 is one grey level
AT = pytest.mark.parametrize("size", SIZES, ids=[f"{height}x{width}" for height, width in SIZES])
SIDE = 48  # pixels of a view or tile
# 8 divides the side; 7 leaves 6 pixels unseen, as a patch of 14 does at 384 pixels.
PATCHES = pytest.mark.parametrize("patch", [8, 7])


def gradient(size: tuple[int, int]) -> Image.Image:
    height, width = size
    pixels = np.full((height, width, 3), 255.0)
    pixels[..., 0] = (np.arange(width) + 0.5) / width * 255
    pixels[..., 1] = (np.arange(height)[:, None] + 0.5) / height * 255
    return Image.fromarray(pixels.round().astype(np.uint8))


def colours(pixels: np.ndarray, image_processor) -> np.ndarray:
    """Undo the normalisation of pixels [..., 3]: colours in [0, 1]."""
    return pixels * np.array(image_processor.image_std) + np.array(image_processor.image_mean)


def pooled(view: np.ndarray, patch: int) -> np.ndarray:
    """Mean colour [side * side, 3] of the patches of a view [3, h, w], in raster order."""
    _, height, width = view.shape
    cells = view[:, : height // patch * patch, : width // patch * patch]
    cells = cells.reshape(3, height // patch, patch, width // patch, patch).mean(axis=(2, 4))
    return cells.reshape(3, -1).T


def patch_colours(views, patch: int, image_processor) -> torch.Tensor:
    """Colours [views, patches, 3] of the patches of normalised views [views, 3, h, w]."""
    views = np.moveaxis(colours(np.moveaxis(np.asarray(views), 1, -1), image_processor), -1, 1)
    return torch.tensor(np.stack([pooled(view, patch) for view in views])).contiguous()


def check_centres(box: np.ndarray, seen: np.ndarray, tolerance: float = TOLERANCE) -> None:
    """Box centres [n, 4] against mean colours [n, 3]."""
    centre = np.stack([box[:, 0] + box[:, 2], box[:, 1] + box[:, 3]], axis=1) / 2
    error = np.abs(centre - seen[:, :2] / seen[:, 2:])
    assert error.max() <= tolerance
    assert error.mean() <= tolerance / 2


def areas(box: np.ndarray) -> np.ndarray:
    return (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])


def check_whole(geometry, image: int = 0, seen: float = 1.0) -> None:
    """The whole view of an image covers it once, but for what its patches leave unseen."""
    whole = geometry.box[(geometry.level == 0) & (geometry.image == image)]
    np.testing.assert_allclose(np.nansum(areas(whole)), seen, rtol=1e-5)
