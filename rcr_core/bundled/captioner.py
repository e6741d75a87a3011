"""The bundled captioner: a small Qwen3-VL with its own tokenizer, in hub layout.

Everything that defines the model but its weights. The saved folder loads with the same loader as any
checkpoint.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from rcr_core.bundled.scenes import ATTRIBUTES, CAPTION_PROMPT, CELL, COLUMNS, ROWS, make_scene
from rcr_core.models.image_only import image_only

MODEL_FOLDER = Path(__file__).resolve().parents[2] / "assets" / "bundled-captioner"
PATCH = 16  # pixels; one visual token is one patch
VOCABULARY = 640
SYSTEM = "You are a helpful assistant."
OTHER_PROMPTS = (
    "Describe this image in detail.",
    "Describe the picture.",
    "What is in this image?",
    "Describe every object in the picture, row by row.",
)
SPECIALS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
CHAT_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\n" + SYSTEM + "<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE over the text of 2,000 scenes; bytes are the fallback for anything else."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=[
            token for token in SPECIALS if token not in ("<|endoftext|>", "<|im_end|>")
        ],
        clean_up_tokenization_spaces=False,
    )


def _corpus():
    """Text with every word of a scene. It fixes the token ids: it stays as it is while weights are kept."""
    ask = "at the {} of the {} row? Answer with one word.".format
    for seed in range(2000):
        scene = make_scene(seed)
        yield scene.caption
        for thing in scene.objects:
            for name in ATTRIBUTES:
                yield f"What {name} is the object {ask(thing.column, thing.row)}"
                yield f"\n{getattr(thing, name)}"
        places = {(thing.row, thing.column) for thing in scene.objects}
        for row, column in product(ROWS, COLUMNS):
            yield f"Is there an object {ask(column, row)}"
            yield "\nyes" if (row, column) in places else "\nno"
        yield f"system\n{SYSTEM}\nuser\nassistant\n{CAPTION_PROMPT}"
        yield from OTHER_PROMPTS


def build_processor(tokenizer: PreTrainedTokenizerFast):
    """The image-only Qwen3-VL processor: 16-pixel patches, no merging, at most 320 x 320 pixels."""
    images = Qwen2VLImageProcessorPil(
        patch_size=PATCH,
        merge_size=1,
        temporal_patch_size=1,
        min_pixels=CELL * CELL,
        max_pixels=(5 * CELL) ** 2,
        image_mean=[0.5, 0.5, 0.5],
        image_std=[0.5, 0.5, 0.5],
    )
    return image_only(Qwen3VLProcessor)(images, tokenizer, chat_template=CHAT_TEMPLATE)


def build_config(tokenizer: PreTrainedTokenizerFast) -> Qwen3VLConfig:
    """About 6 M parameters: text 256 wide, 6 layers, 4 heads of 64, 2 KV heads; vision 192 wide, 4 layers."""
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIALS}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 256,
        "intermediate_size": 608,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "max_position_embeddings": 4096,
        "initializer_range": 0.03,
        "pad_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
        "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [12, 10, 10],
            "mrope_interleaved": True,
        },
    }
    vision = {
        "depth": 4,
        "hidden_size": 192,
        "intermediate_size": 512,
        "num_heads": 3,
        "patch_size": PATCH,
        "spatial_merge_size": 1,
        "temporal_patch_size": 1,
        "out_hidden_size": 256,
        "num_position_embeddings": 400,
        "deepstack_visual_indexes": [1],
        "initializer_range": 0.03,
    }
    return Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int = 0) -> Qwen3VLForConditionalGeneration:
    """The untrained model, float32, from a seed."""
    torch.manual_seed(seed)
    return Qwen3VLForConditionalGeneration(build_config(tokenizer))


def save_captioner(
    model: Qwen3VLForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, folder: Path
) -> None:
    """Write model (bf16), processor, tokenizer and generation config to `folder` in hub layout."""
    model.generation_config = GenerationConfig(
        do_sample=False,
        eos_token_id=[tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>")],
        pad_token_id=tokenizer.pad_token_id,
    )
    model.to(torch.bfloat16).save_pretrained(folder)
    build_processor(tokenizer).save_pretrained(folder)
