"""A processor class without its video part.

The video processors of transformers need torchvision, which still images do not. `ProcessorMixin` derives the
sub-processors, and what it saves, from the parameters of `__init__`, so a subclass whose signature does not
name the video part loads, runs and saves without it.
"""

from __future__ import annotations

import inspect

from transformers import Idefics3Processor, SmolVLMProcessor

VIDEO = "video_processor"


def image_only(processor_class: type) -> type:
    """`processor_class` for still images only, under its stock name: saved folders name that."""
    # SmolVLM treats images as Idefics3 does; its own class also insists on a package that spells out how many
    # frames a video has.
    base = Idefics3Processor if processor_class is SmolVLMProcessor else processor_class
    signature = inspect.signature(base.__init__)
    video = {VIDEO: None} if VIDEO in signature.parameters else {}

    class ImageOnly(base):
        def __init__(self, image_processor=None, tokenizer=None, chat_template=None, **kwargs):
            parts = {"image_processor": image_processor, "tokenizer": tokenizer, **video}
            super().__init__(**parts, chat_template=chat_template, **kwargs)

    ImageOnly.__init__.__signature__ = signature.replace(
        parameters=[parameter for name, parameter in signature.parameters.items() if name != VIDEO]
    )
    ImageOnly.__name__ = ImageOnly.__qualname__ = processor_class.__name__
    return ImageOnly
