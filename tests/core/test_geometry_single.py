"""Boxes of one square view an image: LLaVA, PaliGemma and Gemma 3, against pixels."""

import numpy as np
import pytest
import torch
from transformers import Gemma3Config, LlavaConfig, PaliGemmaConfig
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.gemma3.modeling_gemma3 import Gemma3MultiModalProjector
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from rcr_core.errors import PromptError
from rcr_core.models import visual_geometry
from tests.core.gradients import (
    AT,
    PATCHES,
    SIDE,
    SIZES,
    TOLERANCE,
    areas,
    check_centres,
    check_whole,
    gradient,
    patch_colours,
)

IMAGE = 7  # the placeholder in these prompts
SQUARE = {"height": SIDE, "width": SIDE}
TWO = ((64, 192), (251, 250))


def vision(patch: int, kind: str = "siglip_vision_model") -> dict:
    return {"model_type": kind, "image_size": SIDE, "patch_size": patch}


def llava(patch=8):
    return LlavaConfig(image_token_index=IMAGE, vision_config=vision(patch, "clip_vision_model"))


def gemma(patch=8, tokens=9):
    return Gemma3Config(image_token_index=IMAGE, mm_tokens_per_image=tokens, vision_config=vision(patch))


def prompt(image_processor, sizes, tokens, lead=(1,)):
    """The processor's output, with the tokens of each view between two marks."""
    inputs = dict(image_processor([gradient(size) for size in sizes], return_tensors="pt"))
    view = [3, *[IMAGE] * tokens, 4]
    inputs["input_ids"] = torch.tensor([[*lead, *view * len(inputs["pixel_values"]), 2]])
    return inputs


def pooled_by_gemma(config, views, image_processor):
    """What the model's own pooling makes of the colours of patches: [views * tokens, 3]."""
    patch = config.vision_config.patch_size
    seen = patch_colours(views, patch, image_processor).transpose(1, 2)
    across = SIDE // patch
    pooled = Gemma3MultiModalProjector(config).avg_pool(seen.reshape(len(views), 3, across, across))
    return pooled.flatten(2).transpose(1, 2).reshape(-1, 3).numpy()


@AT
@PATCHES
@pytest.mark.parametrize("processor_class", [CLIPImageProcessorPil, LlavaImageProcessorPil])
def test_llava_boxes_lie_in_the_centre_crop(processor_class, patch, size):
    image_processor = processor_class(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    inputs = prompt(image_processor, (size,), 36)
    geometry = visual_geometry(llava(patch), inputs, (size,), image_processor)
    check_centres(geometry.box, patch_colours(inputs["pixel_values"], patch, image_processor)[0].numpy())
    np.testing.assert_array_equal(geometry.position, np.arange(2, 38))
    seen = min(size) / max(size) * (6 * patch / SIDE) ** 2
    np.testing.assert_allclose(areas(geometry.box).sum(), seen, atol=0.02)


@AT
def test_llava_boxes_of_an_image_padded_to_a_square(size):
    """Tokens that see the padding only have no box; those on its edge have a smaller one."""
    image_processor = LlavaImageProcessorPil(
        size={"shortest_edge": SIDE}, crop_size=SQUARE, do_pad=True, image_mean=[0, 0, 0], image_std=[1, 1, 1]
    )
    inputs = prompt(image_processor, (size,), 36)
    geometry = visual_geometry(llava(), inputs, (size,), image_processor)
    seen = patch_colours(inputs["pixel_values"], 8, image_processor)[0].numpy()
    shown = ~np.isnan(geometry.box[:, 0])
    assert (seen[~shown, 2] < 0.05).all()  # the colour of an edge bleeds a little where it is resampled
    inside = seen[:, 2] > 0.05
    assert shown[inside].all()
    scale = np.array(size[::-1]) / max(size)  # errors in parts of the square
    check_centres(geometry.box[inside] * np.tile(scale, 2), seen[inside] * [*scale, 1], 2 * TOLERANCE)
    np.testing.assert_allclose(areas(geometry.box[shown]).sum(), 1, rtol=1e-5)
    # How much picture a token saw is how much of the padded square its box covers.
    square = max(size) ** 2 / (size[0] * size[1])
    np.testing.assert_allclose(areas(geometry.box[shown]) * 36 / square, seen[shown, 2], atol=0.03)


@pytest.mark.parametrize("crop", [32, 60])
def test_a_crop_smaller_or_larger_than_what_was_resized(crop):
    """60 of 48 x 144 pixels: the rows reach into the black above and below, the columns do not."""
    square = {"height": crop, "width": crop}
    image_processor = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=square)
    config = llava(4)
    inputs = prompt(image_processor, ((64, 192),), (crop // 4) ** 2)
    geometry = visual_geometry(config, inputs, ((64, 192),), image_processor)
    seen = patch_colours(inputs["pixel_values"], 4, image_processor)[0].numpy()
    black = seen[:, 2] < 1e-6
    np.testing.assert_array_equal(np.isnan(geometry.box[:, 0]), black)
    inside = seen[:, 2] > 0.999
    check_centres(geometry.box[inside], seen[inside])
    covered = {32: 32 * 32, 60: 48 * 60}[crop] / (48 * 144)
    np.testing.assert_allclose(areas(geometry.box[~black]).sum(), covered, rtol=1e-5)


@AT
@PATCHES
def test_paligemma_boxes_of_an_image_stretched_to_a_square(patch, size):
    """The image's tokens come first in the prompt."""
    config = PaliGemmaConfig(image_token_index=IMAGE, vision_config=vision(patch))
    image_processor = SiglipImageProcessorPil(size=SQUARE)
    inputs = prompt(image_processor, (size,), 36, lead=())
    inputs["input_ids"] = inputs["input_ids"][:, 1:]
    geometry = visual_geometry(config, inputs, (size,), image_processor)
    check_centres(geometry.box, patch_colours(inputs["pixel_values"], patch, image_processor)[0].numpy())
    np.testing.assert_array_equal(geometry.position, np.arange(36))
    check_whole(geometry, seen=(6 * patch / SIDE) ** 2)


@AT
@PATCHES
def test_gemma3_boxes_of_pooled_patches(patch, size):
    config, image_processor = gemma(patch), Gemma3ImageProcessorPil(size=SQUARE)
    inputs = prompt(image_processor, (size,), 9)
    geometry = visual_geometry(config, inputs, (size,), image_processor)
    check_centres(geometry.box, pooled_by_gemma(config, inputs["pixel_values"], image_processor))
    check_whole(geometry, seen=(6 * patch / SIDE) ** 2)


@AT
def test_gemma3_boxes_of_crops(size):
    """Pan and scan: the whole image, then crops along its longer side where it is long enough."""
    config = gemma()
    image_processor = Gemma3ImageProcessorPil(
        size=SQUARE,
        do_pan_and_scan=True,
        pan_and_scan_min_crop_size=16,
        pan_and_scan_max_num_crops=4,
        pan_and_scan_min_ratio_to_activate=1.2,
    )
    inputs = prompt(image_processor, (size,), 9)
    crops = int(inputs.pop("num_crops")[0])
    geometry = visual_geometry(config, inputs, (size,), image_processor)
    check_centres(geometry.box, pooled_by_gemma(config, inputs["pixel_values"], image_processor))
    check_whole(geometry)
    assert geometry.level.tolist() == [0] * 9 + [1] * 9 * crops
    assert (crops > 1) == (max(size) / min(size) >= 1.2)
    if crops:
        np.testing.assert_allclose(areas(geometry.box[9:]).sum(), 1, rtol=1e-5)


def test_crops_of_several_images_cannot_be_told_apart():
    inputs = {"input_ids": torch.full((1, 45), IMAGE), "pixel_values": torch.zeros(5, 3, SIDE, SIDE)}
    with pytest.raises(PromptError, match="several images"):
        visual_geometry(gemma(), inputs, TWO, Gemma3ImageProcessorPil(size=SQUARE))


@pytest.mark.parametrize("family", ["llava", "gemma3"])
def test_several_images_have_the_boxes_of_each_alone(family):
    sizes = SIZES[1:6]
    if family == "llava":
        config, tokens = llava(), 36
        image_processor = LlavaImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    else:
        config, tokens, image_processor = gemma(), 9, Gemma3ImageProcessorPil(size=SQUARE)
    together = visual_geometry(config, prompt(image_processor, sizes, tokens), sizes, image_processor)
    assert together.image.tolist() == np.repeat(np.arange(5), tokens).tolist()
    for number, size in enumerate(sizes):
        alone = visual_geometry(config, prompt(image_processor, (size,), tokens), (size,), image_processor)
        np.testing.assert_array_equal(together.box[together.image == number], alone.box)


@pytest.mark.parametrize("settings", [{"do_pad": True}, {"size": {"shortest_edge": 48, "longest_edge": 96}}])
def test_a_processor_that_cannot_be_followed_gives_no_boxes(settings):
    image_processor = CLIPImageProcessorPil(
        **{"size": {"shortest_edge": SIDE}, "crop_size": SQUARE, **settings}
    )
    inputs = {
        "input_ids": torch.full((1, 36), IMAGE),
        "pixel_values": torch.zeros(1, 3, SIDE, SIDE),
    }
    assert np.isnan(visual_geometry(llava(), inputs, TWO[:1], image_processor).box).all()


@pytest.mark.parametrize("tokens", [35, 25, 49])
def test_tokens_that_are_no_grid_of_patches_have_no_boxes(tokens):
    """6 x 6 patches: 35 tokens are no square, 5 x 5 leaves patches over, 7 x 7 are more than there are."""
    inputs = {"input_ids": torch.full((1, tokens), IMAGE), "pixel_values": torch.zeros(1, 3, SIDE, SIDE)}
    geometry = visual_geometry(llava(), inputs, ((30, 40),), SiglipImageProcessorPil(size=SQUARE))
    assert geometry.position.tolist() == list(range(tokens)) and np.isnan(geometry.box).all()
