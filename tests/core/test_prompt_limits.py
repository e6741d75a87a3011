"""Pixels and tokens of a prompt are bounded; what does not fit is refused before the model computes."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from PIL import Image
from transformers.image_utils import make_flat_list_of_images

from rcr_core.captioning import Captioner, CaptionRequest
from rcr_core.errors import PromptError, SettingsError
from rcr_core.models import PromptLimits, prepare
from rcr_core.models.encoding import measured
from rcr_core.models.limits import bounded, pixels_that_fit
from rcr_core.runs import RunStore
from tests.core.runs import TEXT, picture
from tests.core.stores import ANNA, ended
from tests.core.tiny import ALL_FAMILIES


@contextmanager
def no_forward_pass(model):
    """Nothing of the model computes, neither its vision tower nor a layer."""
    passes = []
    hooks = [
        module.register_forward_pre_hook(lambda module, _: passes.append(type(module).__name__))
        for module in model.modules()
    ]
    yield
    for hook in hooks:
        hook.remove()
    assert passes == []


@pytest.mark.parametrize(
    ("size", "max_pixels", "expected"),
    [
        ((4000, 3000), 1_000_000, (1154, 866)),  # a twelfth of the pixels: sides by 0.28868
        ((4000, 3000), 12_000_000, (4000, 3000)),
        ((4000, 3000), None, (4000, 3000)),
        ((30, 3000), 1024, (3, 320)),
    ],
)
def test_a_picture_is_scaled_down_in_proportion(size, max_pixels, expected):
    image = bounded(Image.new("RGB", size, "teal"), max_pixels)
    assert image.size == expected
    assert image.getpixel((0, 0)) == (0, 128, 128)


def test_fewer_pixels_than_any_model_reads_are_no_limit_to_set():
    with pytest.raises(SettingsError, match="max_pixels must be 1,024 or more, got 1,023"):
        PromptLimits(1023)
    assert PromptLimits(1024).max_pixels == 1024


@pytest.mark.parametrize("family", ["qwen2_vl", "llava_next"])
def test_the_model_gets_the_scaled_picture(load, family):
    """Its geometry and its picture are those of the picture scaled by hand."""
    loaded, image = load(family), picture(1, (96, 160))
    small = prepare(loaded, [image], TEXT, limits=PromptLimits(4000))
    by_hand = prepare(loaded, [image.resize((81, 48), Image.Resampling.BICUBIC, reducing_gap=3.0)], TEXT)
    assert small.geometry.size == ((48, 81),)
    assert small.pictures == by_hand.pictures
    assert small.inputs["input_ids"].equal(by_hand.inputs["input_ids"])
    assert small.inputs["pixel_values"].equal(by_hand.inputs["pixel_values"])


def test_a_prompt_over_the_limit_is_refused_with_a_max_pixels_that_does(load):
    """160 x 160 pixels are 100 tokens of 16 x 16."""
    loaded, image = load("qwen2_vl"), picture(2, (160, 160))
    length = prepare(loaded, [image], TEXT).length
    with no_forward_pass(loaded.model), pytest.raises(PromptError) as refused:
        prepare(loaded, [image], TEXT, limits=PromptLimits(max_tokens=length - 60))
    assert refused.value.message == (
        f"the picture makes 100 tokens of a prompt of {length}, the limit is {length - 60}"
    )
    # 40 tokens are left: 10,240 pixels of the 25,600, of which 10,000 are 6 x 6 tokens.
    assert refused.value.hint == "set max_pixels to 10,000 or less"
    fits = prepare(loaded, [image], TEXT, limits=PromptLimits(10_000, length - 60))
    assert len(fits.geometry.position) == 36
    assert prepare(loaded, [image], TEXT, limits=PromptLimits(max_tokens=length)).length == length


def test_where_no_picture_is_small_enough_another_way_is_told(load):
    loaded = load("qwen2_vl")
    with pytest.raises(PromptError) as refused:
        prepare(loaded, [picture(2), picture(3)], TEXT, limits=PromptLimits(max_tokens=10))
    assert refused.value.message.startswith("2 pictures make 96 tokens of a prompt of ")
    assert refused.value.hint == "use fewer pictures or a shorter prompt"


def test_the_pixels_that_fit_are_tried_out():
    """A processor of tiles takes no fewer tokens until a tile less will do."""

    def tiles(pixels):
        return 100 * -(-pixels // 100_000)

    assert tiles(pixels_that_fit(tiles, 480_000, 500, 250)) <= 250
    assert pixels_that_fit(lambda pixels: 576, 480_000, 576, 500) is None
    assert pixels_that_fit(lambda pixels: pixels // 1000, 12_000_000, 12_000, 4_100) == 4_100_000


def test_prompt_and_new_tokens_beyond_what_the_model_holds_are_refused_before_the_prefill(load):
    """The tiny model holds 2,048."""
    loaded = load("qwen2_vl")
    captioner, prompt = Captioner(loaded), prepare(loaded, [picture()], TEXT)
    most = 2048 - prompt.length
    with no_forward_pass(loaded.model):
        assert prepare(loaded, [picture()], TEXT, most).length == prompt.length
        with pytest.raises(PromptError, match=f"and {most + 1} new ones make 2049, more than the 2048"):
            prepare(loaded, [picture()], TEXT, most + 1)
        captioner.run(prompt, CaptionRequest("rcr", max_new_tokens=most))
        with pytest.raises(PromptError, match="more than the 2048"):
            captioner.run(prompt, CaptionRequest("rcr", max_new_tokens=most + 1))
        store = RunStore()
        request = CaptionRequest("rcr", max_new_tokens=most + 1)
        run = ended(store.start(ANNA, lambda: captioner.run(prompt, request), policy="rcr"))
        store.close()
    assert (run.status, run.steps, run.trace()) == ("error", 0, None)
    assert "more than the 2048" in run.error.message and run.error.hint


@pytest.mark.parametrize("family", ALL_FAMILIES)
@pytest.mark.parametrize("sizes", [[(64, 192)], [(251, 250), (97, 120)], [(333, 1000)]], ids=str)
def test_tokens_that_are_counted_are_those_that_are_made(family, sizes, load):
    loaded, images = load(family), [picture(at, size) for at, size in enumerate(sizes)]
    measure, prepared = measured(loaded, images, TEXT), prepare(loaded, images, TEXT)
    made = int((prepared.inputs["input_ids"] == loaded.model.config.image_token_id).sum())
    assert (measure.length, measure.visual) == (prepared.length, made)


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def test_large_pictures_are_refused_before_their_pixels_are_made(family, load, monkeypatch):
    """Sixteen photos of 12 million pixels would be gigabytes. These are larger than their stand-ins."""
    loaded = load(family)
    processor = type(loaded.processor.image_processor)
    preprocess, sizes = processor.preprocess, []

    def noted(self, images, *args, **kwargs):
        sizes.extend(image.size for image in make_flat_list_of_images(images))
        return preprocess(self, images, *args, **kwargs)

    monkeypatch.setattr(processor, "preprocess", noted)
    photos = [Image.new("RGB", (400, 300))] * 16
    with pytest.raises(PromptError, match="16 pictures make .* tokens") as refused:
        prepare(loaded, photos, TEXT, limits=PromptLimits(max_tokens=1000))
    assert refused.value.hint.startswith("set max_pixels to ")
    assert sizes and max(width * height for width, height in sizes) <= 224 * 224
