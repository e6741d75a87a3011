"""Images and a prompt through the model's own processor, and how many tokens they make."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from PIL import Image
from transformers import PaliGemmaProcessor

from rcr_core.errors import ImageError, PromptError
from rcr_core.models.loading import LoadedModel

_STAND_IN = (224, 224)  # a picture that every processor takes


@dataclass(frozen=True, eq=False)
class Measure:
    """Tokens of a prompt (T), the visual ones among them, `inputs` where it had to be encoded for that."""

    length: int
    visual: int
    inputs: dict[str, torch.Tensor] | None = None


def measured(loaded: LoadedModel, images: list[Image.Image], prompt: str) -> Measure:
    """How long a prompt is. Raises `ImageError` and `PromptError`.

    A processor whose patches grow with the picture can make gigabytes of one, so it is asked for their number
    alone. The others make a few tiles of a picture at most, and only encoding tells how many.
    """
    processor = loaded.processor.image_processor
    countable = hasattr(processor, "merge_size") and hasattr(processor, "get_number_of_image_patches")
    if not images or not countable:
        inputs = encode(loaded, images, prompt)
        return Measure(inputs["input_ids"].shape[1], _visual(loaded, inputs), inputs)
    inputs = encode(loaded, [Image.new("RGB", _STAND_IN)] * len(images), prompt)
    try:
        patches = [processor.get_number_of_image_patches(image.height, image.width) for image in images]
    except ValueError as error:
        raise _refused_image(loaded, error) from error
    visual = sum(patches) // processor.merge_size**2
    return Measure(inputs["input_ids"].shape[1] - _visual(loaded, inputs) + visual, visual)


def _visual(loaded: LoadedModel, inputs: dict[str, torch.Tensor]) -> int:
    return int((inputs["input_ids"] == loaded.model.config.image_token_id).sum())


def _refused_image(loaded: LoadedModel, error: ValueError) -> ImageError:
    return ImageError(f"{loaded.name} cannot take this image: {error}", "use another image")


def encode(loaded: LoadedModel, images: list[Image.Image], prompt: str) -> dict[str, torch.Tensor]:
    """What the model's processor makes of both, in host memory. Raises `ImageError`, `PromptError`."""
    processor = loaded.processor
    try:
        if loaded.has_template:
            content = [
                *({"type": "image", "image": image} for image in images),
                {"type": "text", "text": prompt},
            ]
            batch = processor.apply_chat_template(
                [{"role": "user", "content": content}],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
            )
        else:
            # PaliGemma's processor sets the text off from the images, and ends it, by itself.
            space = "" if isinstance(processor, PaliGemmaProcessor) else "\n"
            text = f"{processor.image_token}{space}" * len(images) + prompt
            batch = processor(images=[images] if images else None, text=text, return_tensors="pt")
    except ValueError as error:  # the processors have no type of their own for what they refuse
        if images:
            raise _refused_image(loaded, error) from error
        raise PromptError(f"{loaded.name} cannot take this prompt: {error}", "add an image") from error
    inputs = dict(batch)
    inputs.pop("labels", None)  # PaliGemma's processor always prepares for training, too
    if not inputs.pop("attention_mask").all():
        raise PromptError(f"the tokenizer of {loaded.name} pads its prompts, which is not supported", "")
    return inputs
