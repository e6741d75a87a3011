"""Boxes of tiles and of the view of the whole: Idefics3, SmolVLM and InternVL, against pixels."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import Idefics3Config, Idefics3Processor, InternVLConfig, PreTrainedTokenizerFast
from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.idefics3.modeling_idefics3 import Idefics3Connector
from transformers.models.internvl.modeling_internvl import InternVLModel
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from rcr_core.errors import PromptError
from rcr_core.models import visual_geometry
from rcr_core.models.geometry import shown_sizes
from tests.core.gradients import (
    AT,
    PATCHES,
    SIDE,
    TOLERANCE,
    check_centres,
    check_whole,
    gradient,
    patch_colours,
)

TOKENS = 9  # of a tile: 6 x 6 patches of 8 or 7 pixels, merged 2 x 2
SEVERAL = ((301, 97), (96, 96), (20, 640), (33, 47))
IMAGE = 7  # InternVL's placeholder in these prompts


def idefics_processor(image_processor_class=Idefics3ImageProcessorPil, longest=4 * SIDE):
    tags = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    specials = ["<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>", *tags]
    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, additional_special_tokens=specials)
    images = image_processor_class(
        size={"longest_edge": longest}, max_image_size={"longest_edge": SIDE}, resample=3
    )
    return Idefics3Processor(images, tokenizer, image_seq_len=TOKENS)


def idefics(processor, sizes, patch=8):
    """The geometry of a prompt with gradient images, and what each of its tokens saw."""
    text = "Compare " + ", ".join(["<image>"] * len(sizes)) + "."
    inputs = dict(processor(images=[gradient(size) for size in sizes], text=text, return_tensors="pt"))
    config = Idefics3Config(
        vision_config={"image_size": SIDE, "patch_size": patch},
        scale_factor=2,
        image_token_id=processor.image_token_id,
    )
    features = patch_colours(inputs["pixel_values"][0], patch, processor.image_processor)
    merged = Idefics3Connector.pixel_shuffle(None, features, 2)  # [views, tokens, 2 * 2 patches of 3 colours]
    seen = merged.reshape(-1, 4, 3).mean(dim=1).numpy()
    return visual_geometry(config, inputs, sizes, processor.image_processor), seen


def internvl(sizes, patch=8, **settings):
    image_processor = GotOcr2ImageProcessorPil(
        size={"height": SIDE, "width": SIDE}, crop_to_patches=True, **settings
    )
    inputs = dict(image_processor([gradient(size) for size in sizes], return_tensors="pt"))
    views = inputs.pop("num_patches").tolist()
    ids = [token for count in views for token in [1, *[IMAGE] * (count * TOKENS), 2]]
    inputs["input_ids"] = torch.tensor([ids])
    config = InternVLConfig(
        vision_config={"image_size": [SIDE, SIDE], "patch_size": [patch, patch]}, image_token_id=IMAGE
    )
    features = patch_colours(inputs["pixel_values"], patch, image_processor).reshape(-1, 6, 6, 3)
    merged = InternVLModel.pixel_shuffle(None, features, scale_factor=0.5)
    return config, inputs, image_processor, merged.reshape(-1, 4, 3).mean(dim=1).numpy()


@AT
@PATCHES
@pytest.mark.parametrize("image_processor_class", [Idefics3ImageProcessorPil, SmolVLMImageProcessorPil])
def test_idefics3_boxes_lie_where_the_pixels_came_from(image_processor_class, patch, size):
    geometry, seen = idefics(idefics_processor(image_processor_class), (size,), patch)
    # The processor shrinks 20 x 640 pixels to 6 x 192 before it stretches them, which moves their colours.
    check_centres(geometry.box, seen, 0.006 if min(size) == 20 else TOLERANCE)
    check_whole(geometry, seen=(6 * patch / SIDE) ** 2)
    assert geometry.level.tolist() == [1] * (len(seen) - TOKENS) + [0] * TOKENS
    assert geometry.size == (size,) and not geometry.image.any()


def test_several_images_of_idefics3_have_the_boxes_of_each_alone():
    processor = idefics_processor()
    both, seen = idefics(processor, SEVERAL)
    check_centres(both.box, seen)
    for number, size in enumerate(SEVERAL):
        alone, _ = idefics(processor, (size,))
        np.testing.assert_array_equal(both.box[both.image == number], alone.box)
        np.testing.assert_array_equal(both.level[both.image == number], alone.level)
        check_whole(both, number)


def test_an_image_that_idefics3_does_not_split_has_the_whole_view_only():
    geometry, seen = idefics(idefics_processor(longest=SIDE), ((64, 192), (48, 48)))
    assert geometry.image.tolist() == [0] * TOKENS + [1] * TOKENS and not geometry.level.any()
    check_centres(geometry.box, seen)
    check_whole(geometry, 0)
    check_whole(geometry, 1)


def test_tiles_without_a_tag_of_their_own_have_no_boxes():
    """Nine rows, but tags for six: the rest is spelt out, and nothing in the prompt is certain any more."""
    geometry, seen = idefics(idefics_processor(longest=9 * SIDE), ((432, 90),))
    assert len(seen) == (9 * 2 + 1) * TOKENS
    tiles = geometry.level == 1
    assert np.isnan(geometry.box[tiles]).all() and tiles.sum() == 9 * 2 * TOKENS
    check_whole(geometry)


@pytest.mark.parametrize("first", [1, 2])
def test_rows_of_tiles_by_the_line_breaks(first):
    """Four tiles with a break after the first or the second; one tile and then three are no grid."""
    mark, line_break, tag = 1, 2, 10
    view = [[mark, tag + number, *[IMAGE] * TOKENS] for number in range(5)]
    tiles = [
        token for number in range(4) for token in view[number] + [line_break] * (number + 1 in (first, 4))
    ]
    inputs = {
        "input_ids": torch.tensor([[*tiles, line_break, *view[4], mark]]),
        "pixel_values": torch.zeros(1, 5, 3, SIDE, SIDE),
    }
    config = Idefics3Config(vision_config={"image_size": SIDE, "patch_size": 8}, image_token_id=IMAGE)
    geometry = visual_geometry(config, inputs, ((96, 96),))
    check_whole(geometry)
    corners = geometry.box[[0, TOKENS, 2 * TOKENS, 3 * TOKENS], :2]
    grid = np.full((4, 2), np.nan) if first == 1 else [[0, 0], [0.5, 0], [0, 0.5], [0.5, 0.5]]
    np.testing.assert_array_equal(corners, grid)


@AT
@PATCHES
def test_internvl_boxes_lie_where_the_pixels_came_from(patch, size):
    config, inputs, image_processor, seen = internvl((size,), patch)
    geometry = visual_geometry(config, inputs, (size,), image_processor)
    check_centres(geometry.box, seen)
    check_whole(geometry, seen=(6 * patch / SIDE) ** 2)
    assert geometry.level.tolist() == [1] * (len(seen) - TOKENS) + [0] * TOKENS


@pytest.mark.parametrize("settings", [{}, {"min_patches": 2, "max_patches": 6}, {"max_patches": 1}])
def test_several_images_of_internvl(settings):
    config, inputs, image_processor, seen = internvl(SEVERAL, **settings)
    geometry = visual_geometry(config, inputs, SEVERAL, image_processor)
    check_centres(geometry.box, seen)
    for number in range(len(SEVERAL)):
        check_whole(geometry, number)
    start = np.searchsorted(geometry.image, np.arange(len(SEVERAL)))
    assert (inputs["input_ids"][0, geometry.position[start] - 1] == 1).all()  # each after its own mark


def test_internvl_without_its_image_processor_knows_the_thumbnail_only():
    config, inputs, _, seen = internvl(((64, 192),))
    geometry = visual_geometry(config, inputs, ((64, 192),))
    whole = geometry.level == 0
    assert np.isnan(geometry.box[~whole]).all()
    check_centres(geometry.box[whole], seen[whole])


def test_internvl_images_that_stand_side_by_side_are_refused():
    config, inputs, image_processor, _ = internvl(SEVERAL[:2])
    inputs["input_ids"] = torch.full((1, len(inputs["pixel_values"]) * TOKENS), IMAGE)
    with pytest.raises(PromptError, match="several images"):
        visual_geometry(config, inputs, SEVERAL[:2], image_processor)


def test_a_prompt_with_another_number_of_image_tokens_is_refused():
    config, inputs, image_processor, _ = internvl(((64, 192),))
    inputs["input_ids"] = inputs["input_ids"][:, :-2]  # 4 views of 9 tokens, and one of them lost
    with pytest.raises(PromptError, match="35 image tokens, which 4 views cannot share"):
        visual_geometry(config, inputs, ((64, 192),), image_processor)


def test_images_that_were_squeezed_into_tiles_are_shown_in_their_own_proportions():
    config, inputs, _, _ = internvl(((300, 400), (3000, 40)))
    assert shown_sizes(config, inputs, ((300, 400), (3000, 40)), 30_000) == ((150, 200), (1500, 20))
