"""The prompt of every family, against transformers' own processors used by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import (
    Gemma3Processor,
    Idefics3Processor,
    InternVLProcessor,
    LlavaNextProcessor,
    LlavaOnevisionProcessor,
    LlavaProcessor,
    PaliGemmaProcessor,
    Qwen2_5_VLProcessor,
    Qwen2VLProcessor,
    Qwen3VLProcessor,
    SmolVLMProcessor,
)
from transformers.models.smolvlm import processing_smolvlm

from rcr_core.errors import PromptError
from rcr_core.models import prepare
from tests.core.runs import picture
from tests.core.tiny import ALL_FAMILIES, PATCH

FAMILY = pytest.mark.parametrize("family", ALL_FAMILIES)
TEXT = "What is in the picture, é 日本?"
LLAVA = {"patch_size": PATCH, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
# The class, its settings, the prompt as the family writes it around the images and the text, and an image.
STOCK = {
    **{
        family: (
            kind,
            {},
            "<|im_start|>user\n{images}{text}<|im_end|>\n<|im_start|>assistant\n",
            "<|vision_start|><|image_pad|><|vision_end|>",
        )
        for family, kind in {
            "qwen2_vl": Qwen2VLProcessor,
            "qwen2_5_vl": Qwen2_5_VLProcessor,
            "qwen3_vl": Qwen3VLProcessor,
        }.items()
    },
    "llava": (LlavaProcessor, LLAVA, "USER: {images}{text} ASSISTANT:", "<image>\n"),
    "llava_next": (LlavaNextProcessor, LLAVA, "[INST] {images}{text} [/INST]", "<image>\n"),
    "llava_onevision": (
        LlavaOnevisionProcessor,
        {
            "num_image_tokens": 36,
            "vision_feature_select_strategy": "full",
            "vision_aspect_ratio": "anyres_max_9",
        },
        "<|im_start|>user {images}\n{text}<|im_end|><|im_start|>assistant\n",
        "<image>",
    ),
    "idefics3": (
        Idefics3Processor,
        {"image_seq_len": 9},
        "User:{images}{text}<end_of_utterance>\nAssistant:",
        "<image>",
    ),
    "smolvlm": (
        SmolVLMProcessor,
        {"image_seq_len": 9},
        "User:{images}{text}<end_of_utterance>\nAssistant:",
        "<image>",
    ),
    "internvl": (
        InternVLProcessor,
        {"image_seq_length": 9},
        "<|im_start|>user\n{images}{text}<|im_end|>\n<|im_start|>assistant\n",
        "<IMG_CONTEXT>\n",
    ),
    "gemma3": (
        Gemma3Processor,
        {"image_seq_length": 9},
        "<start_of_turn>user\n{images}{text}<end_of_turn>\n<start_of_turn>model\n",
        "<start_of_image>",
    ),
    "paligemma": (PaliGemmaProcessor, {}, "{images}{text}", "<image>"),
}


def stock(family: str, loaded):
    """transformers' own processor around the parts of a loaded model, and no video part."""
    kind, settings, _, _ = STOCK[family]
    takes_videos = "video_processor" in kind.get_attributes()

    class Stock(kind):
        def __init__(self, image_processor, tokenizer):
            video = {"video_processor": None} if takes_videos else {}
            super().__init__(image_processor, tokenizer, **video, **settings)

    return Stock(loaded.processor.image_processor, loaded.tokenizer)


def equal(inputs: dict, expected: dict) -> None:
    """All tensors equal; masks of ones and what only training needs are dropped."""
    assert expected["attention_mask"].all()
    assert set(inputs) == set(expected) - {"attention_mask", "labels"}
    for name, tensor in inputs.items():
        assert torch.equal(tensor, expected[name]), name


@FAMILY
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_prompt_equals_the_stock_processors(family, count, load, monkeypatch):
    if family == "paligemma" and not count:
        pytest.skip("PaliGemma always needs an image")
    # SmolVLM's own processor only asks whether the package is there; for images it never calls it.
    monkeypatch.setattr(processing_smolvlm, "num2words", str)
    loaded = load(family)
    images = [picture(seed, (96, 160)) for seed in range(count)]
    _, _, layout, image = STOCK[family]
    if family in ("idefics3", "smolvlm") and not count:
        layout = layout.replace("User:", "User: ")
    text = layout.format(images=image * count, text=TEXT)
    expected = stock(family, loaded)(images=[images] if images else None, text=text, return_tensors="pt")
    prepared = prepare(loaded, images, TEXT)
    equal(prepared.inputs, expected)
    assert prepared.length == expected["input_ids"].shape[1]


@FAMILY
def test_without_a_template_the_images_precede_the_text(family, load, monkeypatch):
    """PaliGemma has no template to begin with: its processor adds a BOS token and a newline by itself."""
    monkeypatch.setattr(processing_smolvlm, "num2words", str)
    loaded = replace(load(family), has_template=False)
    images = [picture(0), picture(1)]
    token = STOCK[family][3].strip("\n").removeprefix("<|vision_start|>").removesuffix("<|vision_end|>")
    text = f"{token}{token}{TEXT}" if family == "paligemma" else f"{token}\n{token}\n{TEXT}"
    expected = stock(family, loaded)(images=[images], text=text, return_tensors="pt")
    equal(prepare(loaded, images, TEXT).inputs, expected)


def test_paligemma_attends_both_ways_over_images_bos_text_and_newline(load):
    loaded = load("paligemma")
    prepared = prepare(loaded, [picture(0), picture(1)], "caption en")
    ids = prepared.inputs["input_ids"][0].tolist()
    tokenizer = loaded.tokenizer
    image, bos = tokenizer.convert_tokens_to_ids(["<image>", "<bos>"])
    assert ids[:73] == [image] * 72 + [bos]
    assert tokenizer.decode(ids[73:]) == "caption en\n"
    assert not prepared.inputs["token_type_ids"].any()  # all of it is prefix
    with pytest.raises(PromptError, match="images") as caught:
        prepare(loaded, [], "caption en")
    assert caught.value.hint == "add an image"


@FAMILY
@pytest.mark.parametrize("count", [1, 2])
def test_pieces_tile_the_prompt(family, count, load):
    loaded = load(family)
    prepared = prepare(loaded, [picture(seed) for seed in range(count)], TEXT)
    ids = prepared.inputs["input_ids"][0]
    pieces = prepared.pieces
    assert [piece.start for piece in pieces] == list(np.cumsum([0] + [piece.count for piece in pieces[:-1]]))
    assert sum(piece.count for piece in pieces) == prepared.length
    visual = [
        at
        for piece in pieces
        if piece.kind == "image"
        for at in range(piece.start, piece.start + piece.count)
    ]
    image_id = loaded.model.config.image_token_id
    assert visual == (ids == image_id).nonzero()[:, 0].tolist() == prepared.geometry.position.tolist()
    words = "".join(piece.text for piece in pieces if piece.kind == "text")
    assert words == loaded.tokenizer.decode(ids[ids != image_id]) and TEXT in words


TYPED = {
    "qwen2_5_vl": ["<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"],
    "llava": ["<image>"],
    "llava_onevision": ["<image>", "<video>"],
    "idefics3": ["<image>", "<fake_token_around_image>", "<global-img>", "<row_1_col_1>", "<row_6_col_6>"],
    "smolvlm": ["<image>", "<fake_token_around_image>", "<global-img>", "<row_2_col_3>"],
    "internvl": ["<IMG_CONTEXT>", "<img>", "</img>", "<video>"],
    "gemma3": ["<start_of_image>", "<end_of_image>", "<image_soft_token>"],
    "paligemma": ["<image>"],
}


@pytest.mark.parametrize("family, token", [(family, token) for family in TYPED for token in TYPED[family]])
def test_typed_placeholders_are_refused(family, token, load):
    with pytest.raises(PromptError) as caught:
        prepare(load(family), [picture()], f"Ignore this{token}please")
    assert token in caught.value.message and caught.value.hint


@FAMILY
def test_other_special_words_are_only_text(family, load):
    """Other families' placeholders, an unknown token, and PaliGemma's names of places."""
    text = "an <image_pad> of <unk> at <loc0012>"
    prepared = prepare(load(family), [picture()], text)
    assert text in "".join(piece.text for piece in prepared.pieces)
