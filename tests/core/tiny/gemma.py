"""Tiny Gemma 3 (sliding and full layers in turn, images attended both ways) and PaliGemma (a prefix LM)."""

from __future__ import annotations

from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3Processor,
    Gemma3TextConfig,
    GemmaConfig,
    PaliGemmaConfig,
    PaliGemmaForConditionalGeneration,
    PaliGemmaProcessor,
)
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from tests.core.tiny.parts import SIDE, TILE, generation_of, siglip_tower, text_ids, tokenizer_of

ROLES = {"unk_token": "<unk>", "bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
SPECIALS = (
    *ROLES.values(),
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
    "<image_soft_token>",
)
_NAMED = {
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
    "image_token": "<image_soft_token>",
}
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<start_of_image>"
    "{% elif part['type'] == 'text' %}{{ part['text'] | trim }}{% endif %}"
    "{% endfor %}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
SLIDING_WINDOW = 24


def gemma3(template: bool, text: dict):
    tokenizer = tokenizer_of(SPECIALS, _NAMED, **ROLES)
    tokens = (SIDE // 2) ** 2
    images = Gemma3ImageProcessorPil(size={"height": TILE, "width": TILE})
    processor = Gemma3Processor(
        images, tokenizer, image_seq_length=tokens, chat_template=TEMPLATE if template else None
    )
    layers = ["sliding_attention", "full_attention"] * (text["num_hidden_layers"] // 2)
    sizes = {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": SLIDING_WINDOW}
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in _NAMED.items()}
    config = Gemma3Config(
        text_config=Gemma3TextConfig(**{**text_ids(tokenizer), **sizes, "layer_types": layers, **text}),
        vision_config=siglip_tower(),
        mm_tokens_per_image=tokens,
        boi_token_index=ids["boi_token"],
        eoi_token_index=ids["eoi_token"],
        image_token_index=ids["image_token"],
        tie_word_embeddings=text["tie_word_embeddings"],
    )
    model = Gemma3ForConditionalGeneration(config)
    model.generation_config = generation_of(tokenizer)
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(["<eos>", "<end_of_turn>"])
    return model, processor


def paligemma(template: bool, text: dict):
    """Without a chat template, whatever `template` says: the family has none."""
    tokenizer = tokenizer_of((*ROLES.values(), "<image>"), {"image_token": "<image>"}, **ROLES)
    images = SiglipImageProcessorPil(size={"height": TILE, "width": TILE}, image_seq_length=SIDE**2)
    processor = PaliGemmaProcessor(images, tokenizer)  # adds its tokens of places and masks
    config = PaliGemmaConfig(
        text_config=GemmaConfig(**{**text_ids(tokenizer), "head_dim": 16, **text}),
        vision_config=siglip_tower(),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=text["hidden_size"],
        hidden_size=text["hidden_size"],
        tie_word_embeddings=text["tie_word_embeddings"],
    )
    model = PaliGemmaForConditionalGeneration(config)
    model.generation_config = generation_of(tokenizer)
    return model, processor
