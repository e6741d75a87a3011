"""Load the processor of a checkpoint: image processor and tokenizer as one, for still images."""

from __future__ import annotations

import inspect
from typing import Any

import transformers
from transformers import (
    PROCESSOR_MAPPING,
    AutoImageProcessor,
    AutoTokenizer,
    ImageProcessingMixin,
    ProcessorMixin,
)

from rcr_core.errors import LoadError
from rcr_core.models.failures import SUGGESTION, explained
from rcr_core.models.image_only import image_only

# What older LLaVA folders leave to be guessed.
NEEDED = ("patch_size", "vision_feature_select_strategy", "num_image_tokens")
# What configs and processors call the tokens that stand for images or frame them.
PLACEHOLDERS = (
    "image_token_id",
    "video_token_id",
    "vision_start_token_id",
    "vision_end_token_id",
    "start_image_token_id",
    "end_image_token_id",
    "boi_token_id",
    "eoi_token_id",
    "fake_image_token_id",
    "global_image_token_id",
)


def load_processor(where: str, name: str, config: Any) -> Any:
    """The processor for still images: PIL backend, for the same pixels everywhere, and no video part."""
    with explained(name, "processor"):
        options, _ = ProcessorMixin.get_processor_dict(where)
        declared = options.get("processor_class")
        if declared is None:
            declared = ImageProcessingMixin.get_image_processor_dict(where)[0].get("processor_class")
        images = AutoImageProcessor.from_pretrained(where, backend="pil", trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False)
    kind = getattr(transformers, declared or "", None) or PROCESSOR_MAPPING.get(type(config), None)
    parts = kind.get_attributes() if isinstance(kind, type) and issubclass(kind, ProcessorMixin) else []
    if parts not in (["image_processor", "tokenizer"], ["image_processor", "tokenizer", "video_processor"]):
        raise LoadError(f"the processor of {name} ({declared}) is not supported", SUGGESTION)
    known = inspect.signature(kind.__init__).parameters
    options = {key: value for key, value in options.items() if key in known and key not in parts}
    if "chat_template" in known:
        options.setdefault("chat_template", _template_with_images(tokenizer))
    lacking = [key for key in NEEDED if key in known and options.get(key) is None]
    if lacking:
        raise LoadError(
            f"the processor of {name} lacks {' and '.join(lacking)}: an image's tokens cannot be counted",
            "add what is lacking to processor_config.json; newer versions of a checkpoint have it",
        )
    kind = image_only(kind) if "video_processor" in parts else kind
    with explained(name, "processor"):
        processor = kind(images, tokenizer, **options)
    # transformers makes up an empty tokenizer where the files are missing; the image token gives it away.
    if config.image_token_id not in processor.image_token_ids:
        raise LoadError(
            f"the tokenizer of {name} does not know the model's image token, number {config.image_token_id}",
            "copy tokenizer.json and tokenizer_config.json of the same checkpoint into the folder",
        )
    return processor


def _template_with_images(tokenizer: Any) -> str | None:
    """The tokenizer's chat template, where that is the only one and places images: folders of fine-tunes."""
    template = tokenizer.chat_template
    return template if isinstance(template, str) and "image" in template else None


def has_template(processor: Any) -> bool:
    """Whether the processor knows how the checkpoint's chat is written."""
    template = processor.chat_template
    return isinstance(template, str) or (template is not None and "default" in template)


def placeholders(config: Any, processor: Any) -> frozenset[str]:
    """The tokens that stand for images, or frame them: a person's prompt must not hold any."""
    named = (getattr(part, name, None) for part in (config, processor) for name in PLACEHOLDERS)
    ids = {*named, *processor.image_token_ids, *getattr(processor, "row_col_ids", ())}
    tokenizer = processor.tokenizer
    tokens = tokenizer.convert_ids_to_tokens(sorted(ids - {None, tokenizer.unk_token_id}))
    return frozenset({*tokens, *processor.all_special_multimodal_tokens} - {None})
