"""Boxes of LLaVA-OneVision: the model's own packing, fed with colours, puts them in the tokens' order."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import LlavaOnevisionConfig
from transformers.models.llava_onevision.image_processing_pil_llava_onevision import (
    LlavaOnevisionImageProcessorPil,
)
from transformers.models.llava_onevision.modeling_llava_onevision import LlavaOnevisionModel

from rcr_core.errors import PromptError
from rcr_core.models import visual_geometry
from rcr_core.models.geometry import shown_sizes
from tests.core.gradients import (
    AT,
    PATCHES,
    SIDE,
    TOLERANCE,
    areas,
    check_centres,
    check_whole,
    gradient,
    patch_colours,
)

IMAGE = 7  # the placeholder in these prompts
BASE = 36  # tokens of the base view
TWO = ((64, 192), (251, 250))


def onevision(images, patch=8, most=9, side=SIDE):
    """Config, inputs and what each token saw; `images` is a list, or a list of lists for several a prompt."""
    pinpoints = [[side * rows, side * columns] for rows in range(1, 7) for columns in range(1, 7)]
    config = LlavaOnevisionConfig(
        image_token_index=IMAGE,
        vision_config={"model_type": "siglip_vision_model", "image_size": side, "patch_size": patch},
        image_grid_pinpoints=pinpoints,
        vision_aspect_ratio=f"anyres_max_{most}",
    )
    image_processor = LlavaOnevisionImageProcessorPil(
        size={"height": side, "width": side},
        image_grid_pinpoints=pinpoints,
        image_mean=[0] * 3,
        image_std=[1] * 3,
    )
    inputs = dict(image_processor(images, return_tensors="pt"))
    alone = (inputs["batch_num_images"] == 1).all()
    features = [
        # Views of zeros, added to make a batch, are not looked at by the model.
        patch_colours([view for view in views if not alone or view.any()], patch, image_processor)
        for views in inputs["pixel_values"]
    ]
    packed, _ = LlavaOnevisionModel.pack_image_features(
        SimpleNamespace(config=config),
        features,
        inputs["image_sizes"],
        image_newline=torch.full((3,), torch.nan, dtype=torch.float64),
        vision_aspect_ratio=config.vision_aspect_ratio,
    )
    ids = [token for tokens in packed for token in [3, *[IMAGE] * len(tokens), 4]]
    inputs["input_ids"] = torch.tensor([ids])
    return config, inputs, torch.cat(packed).numpy()


@AT
@PATCHES
@pytest.mark.parametrize("most", [36, 9, 2])
def test_onevision_boxes_lie_where_the_pixels_came_from(most, patch, size):
    """Up to 6 x 6 tiles; where they come to more than `most` tiles of tokens, the grid is thinned out."""
    config, inputs, seen = onevision([gradient(size)], patch, most)
    geometry = visual_geometry(config, inputs, (size,))
    newline, black = np.isnan(seen[:, 2]), seen[:, 2] < 1e-6
    assert np.isnan(geometry.box[newline | black]).all()
    inside = seen[:, 2] > 0.999
    # Thinning takes samples between the tokens' centres, and a box is a share of the area: where the picture
    # ends within a token, or a tile within a patch, the two are some pixels apart.
    thinned = len(seen) < len(onevision([gradient(size)], patch, 36)[2])
    check_centres(geometry.box[inside], seen[inside], 0.015 if thinned else TOLERANCE)
    assert not np.isnan(geometry.box[inside]).any()
    assert (geometry.level == (np.arange(len(seen)) >= BASE)).all()
    check_whole(geometry, seen=(6 * patch / SIDE) ** 2)


def test_thinned_boxes_at_the_sizes_of_the_published_models():
    """Tiles of 384 pixels, patches of 14: 13 views of 27 x 27 tokens each, the tiles thinned to about 9."""
    config, inputs, seen = onevision([gradient((2304, 700))], patch=14, side=384)
    assert inputs["pixel_values"].shape[1] == 13 and len(seen) < 10 * 27**2 + 162
    geometry = visual_geometry(config, inputs, ((2304, 700),))
    inside = seen[:, 2] > 0.999
    check_centres(geometry.box[inside], seen[inside])
    tiles = geometry.box[(geometry.level == 1) & inside]
    np.testing.assert_allclose(areas(tiles).sum(), 1, atol=0.05)  # 6 pixels of each tile are unseen


def test_the_grid_was_really_thinned_out():
    """600 x 450 pixels on 5 x 4 tiles and more: their tokens come down to about those of two."""
    _, inputs, _ = onevision([gradient((600, 450))], most=36)
    _, thinned, _ = onevision([gradient((600, 450))], most=2)
    full, less = inputs["input_ids"].numel(), thinned["input_ids"].numel()
    assert less < 4 * BASE < full


def test_several_images_of_one_prompt_are_single_views_padded_to_squares():
    config, inputs, seen = onevision([[gradient(size) for size in TWO]])
    geometry = visual_geometry(config, inputs, TWO)
    assert geometry.image.tolist() == [0] * (BASE + 1) + [1] * (BASE + 1) and not geometry.level.any()
    shown = ~np.isnan(geometry.box[:, 0])
    assert np.isnan(seen[[BASE, -1], 2]).all() and not shown[[BASE, -1]].any()  # the newlines
    assert (seen[shown, 2] > 0.05).all() and not (seen[~shown, 2] > 0.05).any()
    check_centres(geometry.box[shown], seen[shown], 2 * TOLERANCE)
    check_whole(geometry, 0)
    check_whole(geometry, 1)
    assert shown_sizes(config, inputs, TWO, 10**6) == TWO


def test_several_images_each_tiled_have_the_boxes_of_each_alone():
    """A processor that is handed a flat list takes each image for the only one of its prompt."""
    config, inputs, _ = onevision([gradient(size) for size in TWO])
    geometry = visual_geometry(config, inputs, TWO)
    del inputs["batch_num_images"]  # which models do without
    np.testing.assert_array_equal(visual_geometry(config, inputs, TWO).box, geometry.box)
    for number, size in enumerate(TWO):
        config, inputs, _ = onevision([gradient(size)])
        np.testing.assert_array_equal(
            geometry.box[geometry.image == number], visual_geometry(config, inputs, (size,)).box
        )


def test_an_image_is_shown_as_it_lies_on_its_canvas():
    """600 x 450 fits into 6 x 5 tiles of 48 pixels at the scale 0.48."""
    config, inputs, _ = onevision([gradient((600, 450))])
    assert shown_sizes(config, inputs, ((600, 450),), 10**6) == ((288, 216),)
    assert shown_sizes(config, inputs, ((600, 450),), 144 * 108) == ((144, 108),)


def test_a_prompt_with_another_number_of_image_tokens_is_refused():
    config, inputs, seen = onevision([gradient((96, 96))])
    inputs["input_ids"] = inputs["input_ids"][:, :-2]
    with pytest.raises(PromptError, match=f"{len(seen) - 1} image tokens, its images need {len(seen)}"):
        visual_geometry(config, inputs, ((96, 96),))


def test_another_aspect_mode_has_no_boxes():
    config, inputs, _ = onevision([gradient((96, 96))])
    config.vision_aspect_ratio = "pad"
    assert np.isnan(visual_geometry(config, inputs, ((96, 96),)).box).all()
