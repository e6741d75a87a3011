"""Load a checkpoint, a folder or a hub id, as a model that the engine can run.

Safetensors only, code of the checkpoint never runs, and every failure that a person can cause or repair is
one `LoadError` with a hint. The order is cheapest first: configuration, processor, weights.
"""

from __future__ import annotations

import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    AutoConfig,
    AutoModelForImageTextToText,
    PreTrainedConfig,
)

from rcr_core.errors import LoadError
from rcr_core.models.failures import FETCH_AGAIN, SUGGESTION, explained
from rcr_core.models.placement import Place, Placement
from rcr_core.models.processor import has_template, load_processor
from rcr_core.models.progress import Progress, Report, download_bar, unheard, weights_reported
from rcr_core.models.text_attention import check_text_attention

# transformers patches torch while it reads weights and then puts back what it had found: of two threads that
# read at once, one would leave the other's patch behind for good.
_READING = threading.Lock()
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


def load_model(
    source: str | Path,
    device: str = "auto",
    dtype: str = "auto",
    device_map: str = "none",
    quantize: str = "none",
    report: Report = unheard,
) -> LoadedModel:
    """Load an image-text model from a folder in hub layout, or from the hub by its id.

    `device`, `dtype`, `device_map` and `quantize` are those of `Placement`; `report` hears how far it is.

    Raises `LoadError` where the checkpoint or the placement cannot be used, `MemoryLimitError` where there is
    no room for the weights.
    """
    place = Placement(device, dtype, device_map, quantize).resolved()
    where, name = _locate(source)
    report(Progress("configuration"))
    config = _load_config(where, name)
    report(Progress("processor"))
    processor = load_processor(where, name, config)
    report(Progress("weights"))
    model = _load_weights(where, name, place, report)
    template = has_template(processor)
    return LoadedModel(
        model=model,
        processor=processor,
        tokenizer=processor.tokenizer,
        name=name,
        family=config.model_type,
        device=model.device,
        dtype=place.dtype,
        stop_ids=_stop_ids(model.generation_config, processor.tokenizer),
        notes=(*_notes(model.generation_config, template), *_placed(place)),
        max_length=config.get_text_config().max_position_embeddings,
        has_template=template,
    )


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
    check_text_attention(config, name)
    return config


def _load_weights(where: str, name: str, place: Place, report: Report) -> Any:
    if not sys.stderr.isatty():
        transformers.utils.logging.disable_progress_bar()
    with _READING, explained(name, "weights"), weights_reported(report):
        model, info = AutoModelForImageTextToText.from_pretrained(
            where,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported below, in the same words as a missing tensor
            tqdm_class=None if report is unheard else download_bar(report),
            **place.options,
        )
        model = model.eval() if "device_map" in place.options else model.eval().to(place.device)
    absent = sorted(info["missing_keys"]) + sorted(key for key, *_ in info["mismatched_keys"])
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise LoadError(
            f"{name} lacks the weights {absent[0]}{more}, or has them in another shape", FETCH_AGAIN
        )
    return model


def _stop_ids(generation: Any, tokenizer: Any) -> frozenset[int]:
    asked = generation.eos_token_id
    asked = asked if isinstance(asked, list) else [asked]
    return frozenset({*asked, tokenizer.eos_token_id} - {None})


def _placed(place: Place) -> tuple[str, ...]:
    if place.quantize == "none":
        return ()
    return (f"the weights are quantised to {place.quantize}: texts differ from those of the full weights",)


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
