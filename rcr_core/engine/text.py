"""Incremental text: which characters each generated token completed."""

from __future__ import annotations

from tokenizers.decoders import DecodeStream
from transformers import PreTrainedTokenizerFast


class TextStream:
    """Pieces of text, token by token; their concatenation equals the decoded whole.

    A token that completes no character, and a special token, yield None.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self._stream = DecodeStream(skip_special_tokens=True)
        self._tokenizer = tokenizer.backend_tokenizer

    def push(self, token: int) -> str | None:
        """The text that this token completes, or None."""
        return self._stream.step(self._tokenizer, token) or None
