"""Text of tokens: which characters each generated token completed, and the name of a token by itself."""

from __future__ import annotations

from tokenizers.decoders import DecodeStream
from transformers import PreTrainedTokenizerFast

from rcr_core.trace import MAX_NAME


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


class TokenNames:
    """What a token reads as by itself, special tokens included; long ones are cut."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self._tokenizer = tokenizer.backend_tokenizer
        self._known: dict[int, str] = {}

    def of(self, token: int) -> str:
        if token not in self._known:
            name = self._tokenizer.decode([token], skip_special_tokens=False)
            self._known[token] = name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
        return self._known[token]
