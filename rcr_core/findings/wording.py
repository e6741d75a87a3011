"""Words that several findings share."""

from __future__ import annotations


def counted(count: int, one: str, many: str) -> str:
    """So many of something."""
    return f"{count} {one if count == 1 else many}"


def images(count: int) -> str:
    return counted(count, "image", "images")


def by_prefill(tokens: float) -> str:
    """What outputs say of a selection that is in use for so few of their tokens."""
    chosen = "1 token" if tokens == 1 else f"{tokens:.2g} tokens"
    return (
        f"only {chosen} of an output (mean) came after the selection, as a rule the stop token: the answer "
        "itself was chosen by the prefill, which sees everything, so that equal scores say nothing about the "
        "selection"
    )
