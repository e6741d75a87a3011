"""Load a checkpoint, a folder or a hub id, as a model that the engine can run.

Safetensors only, code of the checkpoint never runs, and every failure that a person can cause or repair is
one `LoadError` with a hint. The order is cheapest first: configuration, processor, weights.
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    PROCESSOR_MAPPING,
    AutoConfig,
    AutoImageProcessor,
    AutoModelForImageTextToText,
    AutoTokenizer,
    ImageProcessingMixin,
    PreTrainedConfig,
    ProcessorMixin,
)

from rcr_core.errors import LoadError
from rcr_core.models.failures import FETCH_AGAIN, explained
from rcr_core.models.image_only import image_only

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SUGGESTION = "choose an image-text model such as Qwen2-VL, Qwen3-VL or LLaVA-NeXT"
# What a checkpoint may ask of decoding, with the value that asks for nothing.
NEUTRAL = {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "min_new_tokens": 0, "do_sample": False}


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model in eval mode on its device, with all that turns images and text into its inputs and back."""

    model: Any  # a transformers model with `forward` and `generate`
    processor: Any  # image processor and tokenizer as one; still images only
    tokenizer: Any
    name: str  # folder name or hub id
    family: str  # `config.model_type`
    device: torch.device
    dtype: torch.dtype
    stop_ids: frozenset[int]
    notes: tuple[str, ...]  # sentences for the user
    max_length: int  # positions of the text model: prompt and generated tokens together
    has_template: bool

    @property
    def dtype_name(self) -> str:
        """The dtype as traces, rows and people name it: float32."""
        return str(self.dtype).removeprefix("torch.")


def load_model(source: str | Path, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """Load an image-text model from a folder in hub layout, or from the hub by its id.

    `device`: auto (CUDA where there is one), cpu, cuda or cuda:N. `dtype`: auto (float32 on CPU, bfloat16 on
    CUDA), float32, bfloat16 or float16.

    Raises `LoadError` where the checkpoint, the device or the dtype cannot be used, `MemoryLimitError` where
    there is no room for the weights.
    """
    place = pick_device(device)
    number = _dtype(dtype, place)
    where, name = _locate(source)
    config = _load_config(where, name)
    processor = _load_processor(where, name, config)
    model = _load_weights(where, name, number, place)
    has_template = _has_template(processor)
    return LoadedModel(
        model=model,
        processor=processor,
        tokenizer=processor.tokenizer,
        name=name,
        family=config.model_type,
        device=place,
        dtype=number,
        stop_ids=_stop_ids(model.generation_config, processor.tokenizer),
        notes=_notes(model.generation_config, has_template),
        max_length=config.get_text_config().max_position_embeddings,
        has_template=has_template,
    )


def pick_device(name: str) -> torch.device:
    """The device of a name: auto, cpu, cuda or cuda:N. Raises `LoadError`."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise LoadError(f"unknown device {name!r}", "use auto, cpu, cuda or cuda:N")
    place = torch.device(name)
    if place.type == "cuda" and (place.index or 0) >= torch.cuda.device_count():
        raise LoadError(f"this machine has no device {name}", "use auto or cpu")
    return place


def _dtype(name: str, place: torch.device) -> torch.dtype:
    if name == "auto":
        return torch.float32 if place.type == "cpu" else torch.bfloat16
    if name not in DTYPES:
        raise LoadError(f"unknown dtype {name!r}", f"use auto, {', '.join(DTYPES)}")
    return DTYPES[name]


def _locate(source: str | Path) -> tuple[str, str]:
    """What transformers is asked for, and the name that people see: a folder's own name, or the hub id."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise LoadError(
                f"{folder} is not a model folder: it has no config.json", "choose the folder that has it"
            )
        return str(folder), folder.resolve().name
    if folder.exists():
        raise LoadError(f"{source} is a file, not a model folder", "choose the folder that holds config.json")
    if isinstance(source, Path) or not re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", source):
        raise LoadError(
            f"no such folder: {source}", "give the path of a model folder, or a hub id like owner/name"
        )
    return source, source


def _load_config(where: str, name: str) -> Any:
    with explained(name, "configuration"):
        written, _ = PreTrainedConfig.get_config_dict(where)
    model_type = written.get("model_type") if isinstance(written, dict) else None
    if model_type is None:
        raise LoadError(f"{name} has no config.json that names its model type", SUGGESTION)
    if model_type not in CONFIG_MAPPING:
        raise LoadError(
            f"{name} has the architecture {model_type}, which transformers does not know", SUGGESTION
        )
    with explained(name, "configuration"):
        config = AutoConfig.from_pretrained(where, trust_remote_code=False)
    reads_images = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING and hasattr(config, "image_token_id")
    if not reads_images or config.is_encoder_decoder:
        raise LoadError(
            f"{name} is a {model_type} model: it does not read images as tokens of its prompt", SUGGESTION
        )
    return config


def _load_processor(where: str, name: str, config: Any) -> Any:
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


def _load_weights(where: str, name: str, number: torch.dtype, place: torch.device) -> Any:
    if not sys.stderr.isatty():
        transformers.utils.logging.disable_progress_bar()
    with explained(name, "weights"):
        model, info = AutoModelForImageTextToText.from_pretrained(
            where,
            dtype=number,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported below, in the same words as a missing tensor
        )
        model = model.eval().to(place)
    absent = sorted(info["missing_keys"]) + sorted(key for key, *_ in info["mismatched_keys"])
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise LoadError(
            f"{name} lacks the weights {absent[0]}{more}, or has them in another shape", FETCH_AGAIN
        )
    return model


def _has_template(processor: Any) -> bool:
    template = processor.chat_template
    return isinstance(template, str) or (template is not None and "default" in template)


def _stop_ids(generation: Any, tokenizer: Any) -> frozenset[int]:
    asked = generation.eos_token_id
    asked = asked if isinstance(asked, list) else [asked]
    return frozenset({*asked, tokenizer.eos_token_id} - {None})


def _notes(generation: Any, has_template: bool) -> tuple[str, ...]:
    values = {key: getattr(generation, key, None) for key in NEUTRAL}
    asked = [f"{key} {value}" for key, value in values.items() if value not in (None, NEUTRAL[key])]
    notes = []
    if asked:
        asked = ", ".join(asked)
        notes.append(
            f"the checkpoint asks for {asked}; decoding is plain greedy and applies it only when asked to"
        )
    if not has_template:
        notes.append(
            "the checkpoint has no chat template; a prompt is sent as its image followed by its text"
        )
    return tuple(notes)
