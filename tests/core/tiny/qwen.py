"""Tiny Qwen2-VL, Qwen2.5-VL and Qwen3-VL: a grid of patches in the image's own proportions."""

from __future__ import annotations

from transformers import (
    GenerationConfig,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from rcr_core.bundled.captioner import SPECIALS
from rcr_core.models.image_only import image_only
from tests.core.tiny.parts import PATCH, tokenizer_of

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_GRID = {"depth": 2, "num_heads": 2, "patch_size": PATCH, "spatial_merge_size": 2, "temporal_patch_size": 2}


def qwen2_vl(template: bool, text: dict):
    processor, text_ids, ids, generation = _parts(template, Qwen2VLProcessor)
    vision = {**_GRID, "embed_dim": 32, "hidden_size": text["hidden_size"]}
    text = {**text_ids, "rope_parameters": _rope([2, 3, 3]), **text}
    config = Qwen2VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **ids)
    model = Qwen2VLForConditionalGeneration(config)
    model.generation_config = generation
    return model, processor


def qwen2_5_vl(template: bool, text: dict):
    processor, text_ids, ids, generation = _parts(template, Qwen2_5_VLProcessor)
    vision = {
        **_GRID,
        "hidden_size": 32,
        "intermediate_size": 64,
        "out_hidden_size": text["hidden_size"],
        "window_size": 4 * PATCH,  # the first layer attends within 2 x 2 tokens, the last everywhere
        "fullatt_block_indexes": [1],
    }
    text = {**text_ids, "rope_parameters": _rope([2, 3, 3]), **text}
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **ids)
    model = Qwen2_5_VLForConditionalGeneration(config)
    model.generation_config = generation
    return model, processor


def qwen3_vl(template: bool, text: dict):
    processor, text_ids, ids, generation = _parts(template, Qwen3VLProcessor)
    vision = {
        **_GRID,
        "hidden_size": 32,
        "intermediate_size": 64,
        "out_hidden_size": text["hidden_size"],
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
    }
    rope = _rope([4, 2, 2], mrope_interleaved=True)
    text = {**text_ids, "head_dim": 16, "rope_parameters": rope, **text}
    config = Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **ids)
    model = Qwen3VLForConditionalGeneration(config)
    model.generation_config = generation
    return model, processor


def _parts(template: bool, processor_class: type):
    tokenizer = tokenizer_of(SPECIALS, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    images = Qwen2VLImageProcessorPil(
        patch_size=PATCH, merge_size=2, temporal_patch_size=2, min_pixels=32 * 32, max_pixels=192 * 192
    )
    chat = TEMPLATE if template else None
    processor = image_only(processor_class)(images, tokenizer, chat_template=chat)
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIALS}
    config_ids = {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }
    # What the hub's Qwen checkpoints ask for; greedy decoding here must not apply the penalty.
    generation = GenerationConfig(
        eos_token_id=[ids["<|im_end|>"], ids["<|endoftext|>"]],
        pad_token_id=ids["<|endoftext|>"],
        repetition_penalty=1.05,
    )
    text_ids = {"vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": ids["<|im_end|>"]}
    return processor, text_ids, config_ids, generation


def _rope(section: list[int], **extra) -> dict:
    return {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": section, **extra}
