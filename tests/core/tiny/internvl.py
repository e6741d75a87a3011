"""A tiny InternVL (the port of transformers): an image cut into tiles, then its thumbnail."""

from __future__ import annotations

from transformers import (
    InternVLConfig,
    InternVLForConditionalGeneration,
    InternVLProcessor,
    Qwen2Config,
)
from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil

from rcr_core.models.image_only import image_only
from tests.core.tiny.parts import PATCH, SIDE, TILE, generation_of, text_ids, tokenizer_of

SPECIALS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<img>",
    "</img>",
    "<IMG_CONTEXT>",
    "<video>",
)
_NAMED = {
    "start_image_token": "<img>",
    "end_image_token": "</img>",
    "context_image_token": "<IMG_CONTEXT>",
    "video_token": "<video>",
}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<IMG_CONTEXT>\n{% elif part['type'] == 'text' %}{{ part['text'] }}"
    "{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def internvl(template: bool, text: dict):
    tokenizer = tokenizer_of(SPECIALS, _NAMED, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    # crop_to_patches stays false as on the hub: the processor, not the image processor, asks for tiles.
    images = GotOcr2ImageProcessorPil(size={"height": TILE, "width": TILE}, min_patches=1, max_patches=12)
    tokens = (SIDE // 2) ** 2
    processor = image_only(InternVLProcessor)(
        images, tokenizer, image_seq_length=tokens, chat_template=TEMPLATE if template else None
    )
    vision = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": [TILE, TILE],
        "patch_size": [PATCH, PATCH],
    }
    config = InternVLConfig(
        text_config=Qwen2Config(**{**text_ids(tokenizer), **text}),
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=tokens,
        downsample_ratio=0.5,
        tie_word_embeddings=text["tie_word_embeddings"],
    )
    model = InternVLForConditionalGeneration(config)
    model.generation_config = generation_of(tokenizer)
    return model, processor
