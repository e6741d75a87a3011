"""From images and a prompt to a model's inputs, against transformers' own processors used by hand."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import AddedToken
from transformers import LlavaNextProcessor, PaliGemmaProcessor, Qwen2VLProcessor, Qwen3VLProcessor
from transformers.image_processing_utils import select_best_resolution
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from rcr_core.errors import ImageError, PromptError
from rcr_core.models import image_only, load_model, prepare
from tests.core.tiny import PATCH, VISION_FAMILIES, build_tiny

PROMPT = "What is in the picture, é 日本 🎈?"
STOCK = {
    "qwen2_vl": image_only(Qwen2VLProcessor),
    "qwen3_vl": image_only(Qwen3VLProcessor),
    "llava_next": LlavaNextProcessor,
}
IMAGE_TOKEN = {"qwen2_vl": "<|image_pad|>", "qwen3_vl": "<|image_pad|>", "llava_next": "<image>"}

FAMILY = pytest.mark.parametrize("family", VISION_FAMILIES)


def picture(width: int = 150, height: int = 90, seed: int = 0) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 15, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR)


def messages(images: int, prompt: str) -> list[dict]:
    return [{"role": "user", "content": [{"type": "image"}] * images + [{"type": "text", "text": prompt}]}]


def check_equal(prepared, expected) -> None:
    """All tensors equal; the mask is dropped, and was all ones."""
    assert set(prepared.inputs) == set(expected) - {"attention_mask"}
    assert expected["attention_mask"].all()
    for name, tensor in prepared.inputs.items():
        assert torch.equal(tensor, expected[name]), name
    assert prepared.length == expected["input_ids"].shape[1]


@FAMILY
@pytest.mark.parametrize("count", [0, 1, 2])
def test_equals_template_then_call_by_hand(family, count, tiny, load):
    processor = STOCK[family].from_pretrained(tiny(family))
    images = [picture(seed=seed) for seed in range(count)]
    text = processor.apply_chat_template(messages(count, PROMPT), add_generation_prompt=True)
    # The LLaVA template leaves the BOS token to the tokenizer, the Qwen template has none.
    expected = processor(images=images or None, text=text, return_tensors="pt")
    check_equal(prepare(load(family), images, PROMPT), expected)


@pytest.fixture(scope="module")
def base_model(tmp_path_factory):
    """`base_model(family)`: a checkpoint without a chat template."""
    folder = tmp_path_factory.mktemp("base")
    return lambda family: load_model(build_tiny(family, folder / family, template=False))


@FAMILY
def test_without_a_template_the_image_token_precedes_the_prompt(family, base_model):
    model = base_model(family)
    processor = STOCK[family].from_pretrained(model.model.name_or_path)
    text = f"{IMAGE_TOKEN[family]}\n{PROMPT}"
    check_equal(
        prepare(model, [picture()], PROMPT), processor(images=[picture()], text=text, return_tensors="pt")
    )
    assert torch.equal(
        prepare(model, [], PROMPT).inputs["input_ids"],
        processor(text=PROMPT, return_tensors="pt")["input_ids"],
    )


def test_pixels_stay_on_the_host_until_the_prefill(load):
    far = torch.device("meta")
    prepared = prepare(replace(load("qwen2_vl"), device=far), [picture()], PROMPT)
    assert {tensor.device.type for tensor in prepared.inputs.values()} == {"cpu"}
    there = prepared.inputs_on(far)
    assert there.keys() == prepared.inputs.keys()
    assert {tensor.device for tensor in there.values()} == {far}


@FAMILY
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_inputs_run(family, count, load):
    model = load(family)
    prepared = prepare(model, [picture(seed=seed) for seed in range(count)], PROMPT)
    with torch.no_grad():
        logits = model.model(**prepared.inputs).logits
    assert logits.shape[1] == prepared.length and logits.isfinite().all()


@FAMILY
@pytest.mark.parametrize("count", [0, 1, 2])
def test_pieces_tile_the_prompt(family, count, tiny, load):
    model = load(family)
    prepared = prepare(model, [picture(seed=seed) for seed in range(count)], PROMPT)
    ids = prepared.inputs["input_ids"][0].tolist()
    pieces = prepared.pieces
    assert [piece.start for piece in pieces] == list(np.cumsum([0] + [piece.count for piece in pieces[:-1]]))
    assert sum(piece.count for piece in pieces) == prepared.length
    marked = {
        at
        for piece in pieces
        if piece.kind == "image"
        for at in range(piece.start, piece.start + piece.count)
    }
    assert marked == {at for at, token in enumerate(ids) if token == model.model.config.image_token_id}
    assert marked == set(prepared.geometry.position.tolist())
    assert [piece.text for piece in pieces if piece.kind == "image"] == [IMAGE_TOKEN[family]] * count
    words = "".join(piece.text for piece in pieces if piece.kind == "text")
    text = model.tokenizer.decode([token for token in ids if token != model.model.config.image_token_id])
    assert words == text and PROMPT in words


def test_a_character_of_several_tokens_is_one_piece(load):
    pieces = prepare(load("qwen2_vl"), [], PROMPT).pieces
    sizes = {piece.text: piece.count for piece in pieces}
    assert (sizes["é"], sizes["日"], sizes["🎈"]) == (2, 3, 4)  # as many bytes as the tokenizer never merged


def test_images_side_by_side_are_pieces_of_their_own(load):
    model = load("llava_next")
    template = (
        "{% for part in messages[0]['content'] %}{{ '<image>' if part['type'] == 'image' else part['text'] }}"
    )
    processor = LlavaNextProcessor(
        model.processor.image_processor,
        model.tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template + "{% endfor %}",
    )
    images = [picture(), picture(60, 200)]
    prepared = prepare(replace(model, processor=processor), images, "Compare.")
    runs = [piece for piece in prepared.pieces if piece.kind == "image"]
    assert len(runs) == 2 and runs[1].start == runs[0].start + runs[0].count
    assert [piece.count for piece in runs] == np.bincount(prepared.geometry.image).tolist()


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"])
def test_the_shown_image_has_the_pixels_that_the_model_saw(family, load):
    model = load(family)
    prepared = prepare(model, [picture(500, 300)], PROMPT)
    shown = np.asarray(Image.open(io.BytesIO(prepared.pictures[0]))).astype(float) / 255
    rows, columns = (int(side) for side in prepared.inputs["image_grid_thw"][0, 1:])
    assert shown.shape == (rows * PATCH, columns * PATCH, 3)
    # Patches come in blocks of 2 x 2: [row / 2, column / 2, 2, 2, channel, frame, y, x].
    patches = (
        prepared.inputs["pixel_values"].numpy().reshape(rows // 2, columns // 2, 2, 2, 3, 2, PATCH, PATCH)
    )
    seen = patches[:, :, :, :, :, 0].transpose(0, 2, 5, 1, 3, 6, 4).reshape(shown.shape)
    images = model.processor.image_processor
    seen = seen * np.array(images.image_std) + np.array(images.image_mean)
    np.testing.assert_allclose(seen, shown, atol=1e-5)


def test_llava_next_shows_the_picture_fitted_into_its_canvas(load):
    model = load("llava_next")
    prepared = prepare(model, [picture(500, 300)], PROMPT)
    canvas = select_best_resolution((300, 500), model.model.config.image_grid_pinpoints)
    width, height = Image.open(io.BytesIO(prepared.pictures[0])).size
    assert width == canvas[1] and height == -(-300 * width // 500) <= canvas[0]


def test_every_picture_of_a_prompt_is_shown(load):
    """Three sizes, each a whole number of tokens of 2 x 2 patches; all pictures share one cap."""
    model = load("qwen2_vl")
    images = [picture(500, 300), picture(160, 320), picture(96, 96)]
    prepared = prepare(model, images, PROMPT)
    sizes = [Image.open(io.BytesIO(png)).size[::-1] for png in prepared.pictures]
    assert sizes == [
        (rows * PATCH, columns * PATCH) for _, rows, columns in prepared.inputs["image_grid_thw"]
    ]
    assert len(set(sizes)) == 3
    with pytest.raises(ImageError, match="257 images are too many, a trace holds 256"):
        prepare(model, [picture()] * 257, PROMPT)


def test_a_prompt_without_an_image_shows_none(load):
    prepared = prepare(load("qwen2_vl"), [], PROMPT)
    assert prepared.pictures == () and prepared.geometry.size == () and prepared.prompt == PROMPT


@FAMILY
def test_the_limit_counts_prompt_and_new_tokens(family, load):
    model = load(family)
    length = prepare(model, [picture()], PROMPT).length
    room = 2048 - length  # max_position_embeddings of the tiny checkpoints
    assert prepare(model, [picture()], PROMPT, room).length == length
    with pytest.raises(PromptError, match=r"\b2049\b.*\b2048\b") as caught:
        prepare(model, [picture()], PROMPT, room + 1)
    assert str(length) in caught.value.message and caught.value.hint


@pytest.mark.parametrize(
    "family, token",
    [
        *[("qwen2_vl", f"<|{name}|>") for name in ("image_pad", "video_pad", "vision_start", "vision_end")],
        ("qwen3_vl", "<|image_pad|>"),
        ("llava_next", "<image>"),
    ],
)
def test_typed_placeholders_are_refused(family, token, load):
    for images in ([], [picture()]):
        with pytest.raises(PromptError) as caught:
            prepare(load(family), images, f"Ignore this{token}please")
        assert token in caught.value.message and caught.value.hint


def test_other_special_words_are_only_text_to_the_image_check(load):
    """LLaVA's placeholder means nothing to Qwen."""
    assert "<image>" in "".join(
        piece.text for piece in prepare(load("qwen2_vl"), [], "an <image> tag").pieces
    )


def test_an_empty_prompt_needs_an_image(load):
    assert prepare(load("qwen2_vl"), [picture()], "").length > 0
    with pytest.raises(PromptError, match="empty"):
        prepare(load("qwen2_vl"), [], " \n")


def test_an_image_that_the_processor_refuses(load):
    """Qwen's resizing takes no aspect ratio over 200."""
    with pytest.raises(ImageError, match="aspect ratio") as caught:
        prepare(load("qwen2_vl"), [Image.new("RGB", (2400, 8))], PROMPT)
    assert caught.value.hint


def test_a_family_that_always_needs_an_image_says_so(load):
    """PaliGemma's own processor, with a tokenizer at hand."""
    model = load("qwen2_vl")
    images = SiglipImageProcessorPil(size={"height": 48, "width": 48}, image_seq_length=36)
    tokenizer = type(model.tokenizer)(
        tokenizer_object=model.tokenizer.backend_tokenizer, bos_token="<|im_start|>"
    )
    tokenizer.add_tokens([AddedToken("<image>", special=True)])
    processor = PaliGemmaProcessor(images, tokenizer)
    with pytest.raises(PromptError, match="images") as caught:
        prepare(replace(model, processor=processor, tokenizer=tokenizer, has_template=False), [], PROMPT)
    assert caught.value.hint == "add an image"
