"""Tiny LLaVA (a centre crop), LLaVA-NeXT (anyres tiles) and LLaVA-OneVision (anyres tiles, thinned out)."""

from __future__ import annotations

from itertools import product

from transformers import (
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaNextConfig,
    LlavaNextForConditionalGeneration,
    LlavaNextProcessor,
    LlavaOnevisionConfig,
    LlavaOnevisionForConditionalGeneration,
    LlavaOnevisionProcessor,
    LlavaProcessor,
    MistralConfig,
    Qwen2Config,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil
from transformers.models.llava_onevision.image_processing_pil_llava_onevision import (
    LlavaOnevisionImageProcessorPil,
)

from rcr_core.models.image_only import image_only
from tests.core.tiny.parts import (
    PATCH,
    SIDE,
    TILE,
    clip_tower,
    generation_of,
    pinpoints,
    siglip_tower,
    text_ids,
    tokenizer_of,
)

MISTRAL_SPECIALS = ("<unk>", "<s>", "</s>", "<pad>", "<image>")
MISTRAL_ROLES = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
MISTRAL_TEMPLATE = (
    "{% for message in messages %}[INST] {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>\n{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %} [/INST]{% endfor %}"
)
VICUNA_TEMPLATE = (
    "{% for message in messages %}USER: {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>\n{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %} {% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
ONEVISION_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>")
ONEVISION_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }} {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>"
    "{% elif part['type'] == 'text' %}{{ '\n' + part['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def llava(template: bool, text: dict):
    tokenizer = tokenizer_of(MISTRAL_SPECIALS, **MISTRAL_ROLES)
    images = CLIPImageProcessorPil(
        size={"shortest_edge": TILE}, crop_size={"height": TILE, "width": TILE}, do_center_crop=True
    )
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=VICUNA_TEMPLATE if template else None,
    )
    config = LlavaConfig(
        vision_config=clip_tower(),
        text_config=LlamaConfig(**{**text_ids(tokenizer), **text}),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=SIDE**2,
    )
    model = LlavaForConditionalGeneration(config)
    model.generation_config = generation_of(tokenizer)
    return model, processor


def llava_next(template: bool, text: dict):
    tokenizer = tokenizer_of(MISTRAL_SPECIALS, **MISTRAL_ROLES)
    resolutions = pinpoints((1, 2), (2, 1), (2, 2), (3, 1), (1, 3))
    images = LlavaNextImageProcessorPil(
        size={"shortest_edge": TILE},
        crop_size={"height": TILE, "width": TILE},
        image_grid_pinpoints=resolutions,
    )
    processor = LlavaNextProcessor(
        images,
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=MISTRAL_TEMPLATE if template else None,
    )
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    text = {"vocab_size": len(tokenizer), "head_dim": 16, "sliding_window": None, **text}
    config = LlavaNextConfig(
        vision_config=clip_tower(),
        text_config=MistralConfig(bos_token_id=bos, eos_token_id=eos, **text),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_grid_pinpoints=resolutions,
        tie_word_embeddings=False,
    )
    model = LlavaNextForConditionalGeneration(config)
    model.generation_config = generation_of(tokenizer)
    return model, processor


def llava_onevision(template: bool, text: dict):
    tokenizer = tokenizer_of(ONEVISION_SPECIALS, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    resolutions = pinpoints(*product(range(1, 5), repeat=2))  # 3 x 4 and 4 x 4 tiles are thinned out to 9
    images = LlavaOnevisionImageProcessorPil(
        size={"height": TILE, "width": TILE}, image_grid_pinpoints=resolutions
    )
    processor = image_only(LlavaOnevisionProcessor)(
        images,
        tokenizer,
        num_image_tokens=SIDE**2,
        vision_feature_select_strategy="full",
        vision_aspect_ratio="anyres_max_9",
        chat_template=ONEVISION_TEMPLATE if template else None,
    )
    config = LlavaOnevisionConfig(
        vision_config=siglip_tower(),
        text_config=Qwen2Config(**{**text_ids(tokenizer), **text}),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=resolutions,
        vision_aspect_ratio="anyres_max_9",
    )
    model = LlavaOnevisionForConditionalGeneration(config)
    model.generation_config = generation_of(tokenizer)
    return model, processor
