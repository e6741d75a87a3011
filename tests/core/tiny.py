"""Tiny checkpoints in hub layout, built from a seed in under a second, so that tests need no download."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    CLIPVisionConfig,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaNextConfig,
    LlavaNextForConditionalGeneration,
    LlavaNextProcessor,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
)
from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from rcr_core.bundled.captioner import SPECIALS as QWEN_SPECIALS
from rcr_core.models.image_only import image_only

VISION_FAMILIES = ("qwen2_vl", "qwen3_vl", "llava_next")
PATCH = 8  # pixels
LLAVA_SIDE = 6  # patches along one side of a LLaVA-NeXT tile
LLAVA_TILE = PATCH * LLAVA_SIDE  # pixels
MISTRAL_SPECIALS = ("<unk>", "<s>", "</s>", "<pad>", "<image>")
QWEN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MISTRAL_TEMPLATE = (
    "{% for message in messages %}[INST] {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>\n{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %} [/INST]{% endfor %}"
)
CORPUS = (
    "user assistant system Describe this image in detail. What is in the picture?",
    "a red circle left of the blue square, above two green triangles and a small yellow star",
    "[INST] [/INST] The scene shows three large objects on a grey background.",
)
TEXT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}


def build_tiny(
    family: str,
    folder: Path,
    *,
    seed: int = 0,
    max_shard_size: str = "1GB",
    template: bool = True,
    **overrides,
) -> Path:
    """Write a tiny checkpoint of `family` to `folder` and return it.

    Families: `VISION_FAMILIES` and "text_only" (a Llama). 4 layers, 4 query heads, 2 KV heads, head_dim 16.
    `overrides` go to the text config; `template=False` leaves the chat template out.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, processor = _BUILDERS[family](template, {**TEXT, **overrides})
        _spread(model)
    folder = Path(folder)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    processor.save_pretrained(folder)
    return folder


def _spread(model: torch.nn.Module) -> None:
    """Weights that make attention uneven and the greedy text vary; the default init of 0.02 does neither."""
    for name, weight in model.named_parameters():
        with torch.no_grad():
            gain = 1.6 if "q_" in name or "k_" in name else 1.0
            if name.endswith("bias"):
                weight.normal_(0, 0.05)
            elif "norm" in name:
                weight.fill_(gain)
            elif "embed" in name or "newline" in name:
                weight.normal_(0, 1.0)
            else:
                weight.normal_(0, gain / weight[0].numel() ** 0.5)


def _tokenizer(specials: tuple[str, ...], **roles: str) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        special_tokens=list(specials),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if "bos_token" in roles:
        bos = roles["bos_token"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        additional_special_tokens=[token for token in specials if token not in roles.values()],
        clean_up_tokenization_spaces=False,
        **roles,
    )


def _qwen_parts(template: bool, processor_class: type):
    tokenizer = _tokenizer(QWEN_SPECIALS, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    images = Qwen2VLImageProcessorPil(
        patch_size=PATCH, merge_size=2, temporal_patch_size=2, min_pixels=32 * 32, max_pixels=192 * 192
    )
    chat = QWEN_TEMPLATE if template else None
    processor = image_only(processor_class)(images, tokenizer, chat_template=chat)
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in QWEN_SPECIALS}
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


def _qwen2_vl(template: bool, text: dict):
    processor, text_ids, ids, generation = _qwen_parts(template, Qwen2VLProcessor)
    vision = {
        "depth": 2,
        "embed_dim": 32,
        "num_heads": 2,
        "hidden_size": text["hidden_size"],
        "patch_size": PATCH,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    text = {**text_ids, "rope_parameters": _rope([2, 3, 3]), **text}
    config = Qwen2VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **ids)
    model = Qwen2VLForConditionalGeneration(config)
    model.generation_config = generation
    return model, processor


def _qwen3_vl(template: bool, text: dict):
    processor, text_ids, ids, generation = _qwen_parts(template, Qwen3VLProcessor)
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": text["hidden_size"],
        "patch_size": PATCH,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
    }
    rope = _rope([4, 2, 2], mrope_interleaved=True)
    text = {**text_ids, "head_dim": 16, "rope_parameters": rope, **text}
    config = Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **ids)
    model = Qwen3VLForConditionalGeneration(config)
    model.generation_config = generation
    return model, processor


def _llava_next(template: bool, text: dict):
    tokenizer = _tokenizer(
        MISTRAL_SPECIALS, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    pinpoints = [
        [LLAVA_TILE * rows, LLAVA_TILE * columns]
        for rows, columns in ((1, 2), (2, 1), (2, 2), (3, 1), (1, 3))
    ]
    images = LlavaNextImageProcessorPil(
        size={"shortest_edge": LLAVA_TILE},
        crop_size={"height": LLAVA_TILE, "width": LLAVA_TILE},
        image_grid_pinpoints=pinpoints,
    )
    processor = LlavaNextProcessor(
        images,
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=MISTRAL_TEMPLATE if template else None,
    )
    vision = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        image_size=LLAVA_TILE,
        patch_size=PATCH,
        projection_dim=32,
    )
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    text = {"vocab_size": len(tokenizer), "head_dim": 16, "sliding_window": None, **text}
    config = LlavaNextConfig(
        vision_config=vision,
        text_config=MistralConfig(bos_token_id=bos, eos_token_id=eos, **text),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_grid_pinpoints=pinpoints,
        tie_word_embeddings=False,
    )
    model = LlavaNextForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        bos_token_id=bos, eos_token_id=eos, pad_token_id=tokenizer.pad_token_id
    )
    return model, processor


def _text_only(template: bool, text: dict):
    roles = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    tokenizer = _tokenizer(MISTRAL_SPECIALS[:4], **roles)
    tokenizer.chat_template = MISTRAL_TEMPLATE if template else None
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **text))
    return model, tokenizer


_BUILDERS = {"qwen2_vl": _qwen2_vl, "qwen3_vl": _qwen3_vl, "llava_next": _llava_next, "text_only": _text_only}
