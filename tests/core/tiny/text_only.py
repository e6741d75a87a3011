"""A tiny Llama, which reads no images: what loading must refuse."""

from __future__ import annotations

from transformers import LlamaConfig, LlamaForCausalLM

from tests.core.tiny.llava import MISTRAL_ROLES, MISTRAL_SPECIALS, MISTRAL_TEMPLATE
from tests.core.tiny.parts import tokenizer_of


def text_only(template: bool, text: dict):
    tokenizer = tokenizer_of(MISTRAL_SPECIALS[:4], **MISTRAL_ROLES)
    tokenizer.chat_template = MISTRAL_TEMPLATE if template else None
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **text))
    return model, tokenizer
