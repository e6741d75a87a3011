"""A processor class without its video part.

The video processors of transformers need torchvision, which still images do not. `ProcessorMixin` derives the
sub-processors from the parameters of `__init__`, so a subclass that does not name the video part loads, runs
and saves without it.
"""

from __future__ import annotations


def image_only(processor_class: type) -> type:
    """`processor_class` for still images only, under its stock name: saved folders name that."""

    class ImageOnly(processor_class):
        def __init__(self, image_processor=None, tokenizer=None, chat_template=None, **kwargs):
            super().__init__(image_processor, tokenizer, None, chat_template=chat_template, **kwargs)

    ImageOnly.__name__ = ImageOnly.__qualname__ = processor_class.__name__
    return ImageOnly
