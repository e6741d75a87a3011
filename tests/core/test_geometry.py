"""Boxes of visual tokens, checked against pixels: gradient images through the real image processors."""

import numpy as np
import pytest
import torch
from transformers import LlavaConfig
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLVisionConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel

from rcr_core.errors import PromptError
from rcr_core.models import prepare, visual_geometry
from rcr_core.models.geometry import shown_sizes
from tests.core.gradients import AT, areas, check_centres, check_whole, colours, gradient, patch_colours
from tests.core.tiny import ALL_FAMILIES, PATCH, SIDE


@AT
@pytest.mark.parametrize("family", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
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
    features = patch_colours(prepared.inputs["pixel_values"][0], PATCH, model.processor.image_processor)
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
    whole = SIDE**2
    assert (geometry.level == (np.arange(len(seen)) >= whole)).all()
    np.testing.assert_allclose(areas(geometry.box[:whole]).sum(), 1, rtol=1e-5)


@pytest.mark.parametrize("family", [family for family in ALL_FAMILIES if family != "llava_onevision"])
def test_two_images_have_the_boxes_of_each_alone(family, load):
    """OneVision looks at several images in another way, see test_geometry_onevision.py."""
    model, images = load(family), [gradient((64, 192)), gradient((251, 250))]
    both = prepare(model, images, "Compare.").geometry
    for number, image in enumerate(images):
        alone = prepare(model, [image], "Compare.").geometry
        of_it = both.image == number
        np.testing.assert_array_equal(both.box[of_it], alone.box)
        np.testing.assert_array_equal(both.level[of_it], alone.level)
    assert both.size == ((64, 192), (251, 250))


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_every_family_has_boxes_where_its_tokens_show_something(family, load):
    """Through the real processors; newlines and, in OneVision, whole rows of padding have none."""
    model, sizes = load(family), ((64, 192), (96, 96), (20, 20))
    geometry = prepare(model, [gradient(size) for size in sizes], "Compare.").geometry
    blank = {"llava_next": 6 + 12 + 6, "llava_onevision": 4 * 6 + 3}
    assert np.isnan(geometry.box[:, 0]).sum() == blank.get(family, 0)
    for number in range(1, 3):  # the squares, which no family crops
        check_whole(geometry, number)


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
    """Five views that nothing explains: positions are known, areas are not."""
    config = LlavaConfig(image_token_index=7)
    inputs = {"input_ids": torch.tensor([[1, 7, 7, 2, 7, 7]]), "pixel_values": torch.zeros(1, 5, 3, 8, 8)}
    geometry = visual_geometry(config, inputs, ((30, 40),))
    assert geometry.position.tolist() == [1, 2, 4, 5]
    assert np.isnan(geometry.box).all()
    with pytest.raises(PromptError, match="several images"):
        visual_geometry(config, inputs, ((30, 40), (30, 40)))


def test_no_image_has_no_tokens():
    geometry = visual_geometry(LlavaConfig(image_token_index=7), {"input_ids": torch.tensor([[1, 2, 3]])}, ())
    assert len(geometry.position) == 0 and geometry.box.shape == (0, 4) and geometry.size == ()


@pytest.mark.parametrize("pixels, cell", [(10**6, 16), (96 * 64, 16), (96 * 64 - 1, 15), (24, 1)])
def test_a_capped_picture_keeps_whole_pixels_in_a_token(pixels, cell, load):
    """12 x 8 patches of 8 pixels, merged 2 x 2: 6 x 4 tokens of at most 16 pixels."""
    inputs = {"image_grid_thw": torch.tensor([[1, 12, 8]])}
    config = load("qwen2_vl").model.config
    assert shown_sizes(config, inputs, ((700, 500),), pixels) == ((6 * cell, 4 * cell),)


def test_other_pictures_are_capped_in_proportion():
    inputs = {"pixel_values": torch.zeros(1, 3, 8, 8)}
    config = LlavaConfig(image_token_index=7)
    assert shown_sizes(config, inputs, ((300, 400),), 2_000_000) == ((300, 400),)
    assert shown_sizes(config, inputs, ((3000, 4000), (30, 40)), 120_000) == ((300, 400), (30, 40))


def test_windows_of_qwen2_5_vl_do_not_reorder_its_tokens():
    """Without its blocks, the vision tower shows which patches a token comes from: its own 2 x 2.

    Windows of 2 x 2 tokens on a grid of 3 x 5 put them into another order, which the tower undoes.
    """
    config = Qwen2_5_VLVisionConfig(
        depth=0, hidden_size=16, num_heads=2, out_hidden_size=16, patch_size=PATCH, window_size=4 * PATCH
    )
    tower = Qwen2_5_VisionTransformerPretrainedModel(config).eval()
    order = {}
    tower.patch_embed.register_forward_hook(lambda module, args, out: order.update(embedded=out))
    tower.merger.register_forward_pre_hook(lambda module, args: order.update(merged=args[0]))
    grid = torch.tensor([[1, 6, 10]])
    patches = torch.rand(60, 3 * config.temporal_patch_size * PATCH**2)
    with torch.no_grad():
        before = tower(patches, grid).pooler_output
        assert not torch.equal(order["embedded"], order["merged"])
        for token in range(15):
            changed = patches.clone()
            changed[4 * token] += 1
            after = tower(changed, grid).pooler_output
            assert (after != before).any(dim=1).nonzero().flatten().tolist() == [token]
