"""Boxes of visual tokens, checked against pixels: gradient images through the real image processors.

Red grows with x, green with y, blue is full wherever there is picture. So the mean colour of the pixels
behind a token, divided by its blue, is the centre of the part of the picture that the token saw, whatever the
processor did.
"""

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import LlavaConfig
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from rcr_core.errors import PromptError
from rcr_core.models import prepare, visual_geometry
from rcr_core.models.geometry import shown_size
from tests.core.tiny import LLAVA_SIDE, PATCH

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


def check_centres(box: np.ndarray, seen: np.ndarray) -> None:
    """Box centres [n, 4] against mean colours [n, 3]."""
    centre = np.stack([box[:, 0] + box[:, 2], box[:, 1] + box[:, 3]], axis=1) / 2
    error = np.abs(centre - seen[:, :2] / seen[:, 2:])
    assert error.max() <= TOLERANCE
    assert error.mean() <= TOLERANCE / 2


def areas(box: np.ndarray) -> np.ndarray:
    return (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])


@AT
@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"])
def test_qwen_boxes_lie_where_the_pixels_came_from(family, size, load):
    model = load(family)
    prepared = prepare(model, [gradient(size)], "Where?")
    processor = model.processor.image_processor
    # A row of pixel_values is one patch, [channel, frame, y, x]; 2 x 2 patches in a row become one token.
    patches = prepared.inputs["pixel_values"].numpy().reshape(-1, 3, 2, PATCH, PATCH)
    seen = colours(patches.mean(axis=(2, 3, 4)), processor).reshape(-1, 4, 3).mean(axis=1)
    geometry = prepared.geometry
    check_centres(geometry.box, seen)
    np.testing.assert_allclose(areas(geometry.box).sum(), 1, rtol=1e-5)
    assert geometry.size == (size,)
    assert not geometry.level.any() and not geometry.frame.any() and not geometry.image.any()


@AT
def test_llava_next_boxes_lie_where_the_pixels_came_from(size, load):
    """The model's own `pack_image_features`, fed with colours, puts them in the order of the tokens."""
    model = load("llava_next")
    prepared = prepare(model, [gradient(size)], "Where?")
    views = prepared.inputs["pixel_values"][0].numpy()
    views = np.moveaxis(colours(np.moveaxis(views, 1, -1), model.processor.image_processor), -1, 1)
    features = torch.tensor(np.stack([pooled(view, PATCH) for view in views]))
    newline = torch.full((3,), torch.nan, dtype=features.dtype)
    packed, _ = model.model.model.pack_image_features(
        [features], prepared.inputs["image_sizes"], "default", image_newline=newline
    )
    seen, geometry = packed[0].numpy(), prepared.geometry
    assert len(seen) == len(geometry.position)
    newlines, black = np.isnan(seen[:, 2]), seen[:, 2] < 1e-6
    np.testing.assert_array_equal(np.isnan(geometry.box[:, 0]), newlines | black)
    shown = ~(newlines | black)
    check_centres(geometry.box[shown], seen[shown])
    whole = LLAVA_SIDE**2
    assert (geometry.level == (np.arange(len(seen)) >= whole)).all()
    np.testing.assert_allclose(areas(geometry.box[:whole]).sum(), 1, rtol=1e-5)


@AT
@pytest.mark.parametrize("crop", [True, False], ids=["LLaVA crops", "PaliGemma stretches"])
def test_a_single_square_grid_knows_whether_it_was_cropped(size, crop):
    side, patch = 6, 8
    if crop:
        square = {"height": side * patch, "width": side * patch}
        processor = CLIPImageProcessorPil(size={"shortest_edge": side * patch}, crop_size=square)
    else:
        processor = SiglipImageProcessorPil(size={"height": side * patch, "width": side * patch})
    config = LlavaConfig(image_token_index=7)
    inputs = dict(processor(gradient(size), return_tensors="pt"))
    inputs["input_ids"] = torch.tensor([[1] + [7] * side**2 + [2]])
    geometry = visual_geometry(config, inputs, (size,), processor)
    view = inputs["pixel_values"][0].numpy()
    view = np.moveaxis(colours(np.moveaxis(view, 0, -1), processor), -1, 0)
    check_centres(geometry.box, pooled(view, patch))
    np.testing.assert_array_equal(geometry.position, np.arange(1, 1 + side**2))
    covered = min(size) / max(size) if crop else 1
    np.testing.assert_allclose(areas(geometry.box).sum(), covered, atol=0.02)


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl", "llava_next"])
def test_two_images_have_the_boxes_of_each_alone(family, load):
    model, images = load(family), [gradient((64, 192)), gradient((251, 250))]
    both = prepare(model, images, "Compare.").geometry
    for number, image in enumerate(images):
        alone = prepare(model, [image], "Compare.").geometry
        of_it = both.image == number
        np.testing.assert_array_equal(both.box[of_it], alone.box)
        np.testing.assert_array_equal(both.level[of_it], alone.level)
    assert both.size == ((64, 192), (251, 250))


def test_frames_of_a_patch_grid_repeat_its_boxes(load):
    config = load("qwen2_vl").model.config
    ids = torch.tensor([[9] + [config.image_token_id] * 12])
    inputs = {"input_ids": ids, "image_grid_thw": torch.tensor([[2, 4, 6]])}
    geometry = visual_geometry(config, inputs, ((32, 48),))
    assert geometry.frame.tolist() == [0] * 6 + [1] * 6
    np.testing.assert_array_equal(geometry.box[:6], geometry.box[6:])
    np.testing.assert_allclose(geometry.box[4], [1 / 3, 1 / 2, 2 / 3, 1], rtol=1e-6)


@pytest.mark.parametrize("family", ["qwen2_vl", "llava_next"])
def test_a_prompt_with_another_number_of_image_tokens_is_refused(family, load):
    model = load(family)
    inputs = dict(prepare(model, [gradient((96, 96))], "Where?").inputs)
    count = int((inputs["input_ids"] == model.model.config.image_token_id).sum())
    first = int((inputs["input_ids"][0] == model.model.config.image_token_id).nonzero()[0])
    inputs["input_ids"] = torch.cat(
        [inputs["input_ids"][:, :first], inputs["input_ids"][:, first + 1 :]], dim=1
    )
    with pytest.raises(PromptError, match=f"{count - 1} image tokens, its images need {count}"):
        visual_geometry(model.model.config, inputs, ((96, 96),))


def test_an_unknown_layout_has_tokens_but_no_boxes():
    """Idefics3 hands over tiles as [1, tiles, 3, h, w]: positions are known, areas are not."""
    config = LlavaConfig(image_token_index=7)
    inputs = {"input_ids": torch.tensor([[1, 7, 7, 2, 7, 7]]), "pixel_values": torch.zeros(1, 5, 3, 8, 8)}
    geometry = visual_geometry(config, inputs, ((30, 40),))
    assert geometry.position.tolist() == [1, 2, 4, 5]
    assert np.isnan(geometry.box).all()
    with pytest.raises(PromptError, match="several images"):
        visual_geometry(config, inputs, ((30, 40), (30, 40)))


def test_a_count_that_is_no_square_has_no_boxes():
    inputs = {"input_ids": torch.tensor([[7, 7, 7, 7, 7]]), "pixel_values": torch.zeros(1, 3, 8, 8)}
    assert np.isnan(visual_geometry(LlavaConfig(image_token_index=7), inputs, ((30, 40),)).box).all()


def test_no_image_has_no_tokens():
    geometry = visual_geometry(LlavaConfig(image_token_index=7), {"input_ids": torch.tensor([[1, 2, 3]])}, ())
    assert len(geometry.position) == 0 and geometry.box.shape == (0, 4) and geometry.size == ()


@pytest.mark.parametrize("pixels, cell", [(10**6, 16), (96 * 64, 16), (96 * 64 - 1, 15), (24, 1)])
def test_a_capped_picture_keeps_whole_pixels_in_a_token(pixels, cell, load):
    """12 x 8 patches of 8 pixels, merged 2 x 2: 6 x 4 tokens of at most 16 pixels."""
    inputs = {"image_grid_thw": torch.tensor([[1, 12, 8]])}
    assert shown_size(load("qwen2_vl").model.config, inputs, (700, 500), pixels) == (6 * cell, 4 * cell)


def test_other_pictures_are_capped_in_proportion():
    inputs = {"pixel_values": torch.zeros(1, 3, 8, 8)}
    config = LlavaConfig(image_token_index=7)
    assert shown_size(config, inputs, (300, 400), 2_000_000) == (300, 400)
    assert shown_size(config, inputs, (3000, 4000), 120_000) == (300, 400)
