"""Tiny Idefics3 and SmolVLM: an image split into tiles, each framed by tokens, then the global view."""

from __future__ import annotations

from itertools import product

from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3Processor,
    LlamaConfig,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
    SmolVLMProcessor,
)
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from rcr_core.models.image_only import image_only
from tests.core.tiny.parts import PATCH, SIDE, TILE, generation_of, text_ids, tokenizer_of

_FRAMES = (
    "<fake_token_around_image>",
    "<image>",
    "<global-img>",
    "<end_of_utterance>",
    *(f"<row_{row}_col_{column}>" for row, column in product(range(1, 7), repeat=2)),
)
_NAMED = {
    "image_token": "<image>",
    "fake_image_token": "<fake_token_around_image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}
IDEFICS_SPECIALS = ("<|begin_of_text|>", "<|end_of_text|>", *_FRAMES)
SMOL_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *_FRAMES)
_TURNS = (
    "{% for message in messages %}{{ message['role'] | capitalize }}"
    "{{ ':' if message['content'][0]['type'] == 'image' else ': ' }}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
_SCALE = 2  # as many patches along a side become one token
_VISION = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": TILE,
    "patch_size": PATCH,
}
_SPLIT = {
    "size": {"longest_edge": 4 * TILE},
    "max_image_size": {"longest_edge": TILE},
    "do_image_splitting": True,
}


def idefics3(template: bool, text: dict):
    tokenizer = tokenizer_of(
        IDEFICS_SPECIALS,
        bos_token="<|begin_of_text|>",
        eos_token="<end_of_utterance>",
        pad_token="<|end_of_text|>",
    )
    images = Idefics3ImageProcessorPil(**_SPLIT)
    chat = "<|begin_of_text|>" + _TURNS if template else None
    processor = Idefics3Processor(images, tokenizer, image_seq_len=(SIDE // _SCALE) ** 2, chat_template=chat)
    config = Idefics3Config(**_config(tokenizer, text))
    model = Idefics3ForConditionalGeneration(config)
    model.generation_config = generation_of(tokenizer)
    return model, processor


def smolvlm(template: bool, text: dict):
    tokenizer = tokenizer_of(
        SMOL_SPECIALS,
        _NAMED,
        bos_token="<|im_start|>",
        eos_token="<end_of_utterance>",
        pad_token="<|im_end|>",
    )
    images = SmolVLMImageProcessorPil(**_SPLIT)
    chat = "<|im_start|>" + _TURNS if template else None
    tokens = (SIDE // _SCALE) ** 2
    processor = image_only(SmolVLMProcessor)(images, tokenizer, image_seq_len=tokens, chat_template=chat)
    config = SmolVLMConfig(**_config(tokenizer, text))
    model = SmolVLMForConditionalGeneration(config)
    model.generation_config = generation_of(tokenizer)
    return model, processor


def _config(tokenizer, text: dict) -> dict:
    return {
        "text_config": LlamaConfig(**{**text_ids(tokenizer), **text}),
        "vision_config": _VISION,
        "image_token_id": tokenizer.convert_tokens_to_ids("<image>"),
        "scale_factor": _SCALE,
        "pad_token_id": tokenizer.pad_token_id,
    }
