"""CIDEr-D of captions against their references, by the optional package pycocoevalcap.

Vedantam, Zitnick and Parikh, "CIDEr: Consensus-based Image Description Evaluation" (2015).
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

_WORD = re.compile(r"\w+(?:'\w+)*")


def installed() -> bool:
    """Whether the package is there."""
    return _scorer() is not None


@lru_cache(maxsize=64)
def cider_scores(texts: tuple[str, ...], references: tuple[tuple[str, ...], ...]) -> np.ndarray | None:
    """Score of each text against its references: [n], usually between 0 and 10.

    Words are weighed by how rare they are in the references of all images, so that the score of an image
    depends on which others are there. None with fewer than two images, where a text has no reference, where
    the references have no word, and where the package is missing.
    """
    scorer = _scorer()
    wanted = {at: [_words(one) for one in each] for at, each in enumerate(references)}
    told = {at: [_words(text)] for at, text in enumerate(texts)}
    if scorer is None or len(texts) < 2 or not all(wanted.values()) or not any(map(any, wanted.values())):
        return None
    return np.asarray(scorer().compute_score(wanted, told)[1], np.float64)


def _words(text: str) -> str:
    """Lower-case words without punctuation: the package's own tokeniser needs Java."""
    return " ".join(_WORD.findall(text.lower()))


def _scorer():
    try:
        from pycocoevalcap.cider.cider import Cider  # noqa: PLC0415 - optional
    except ImportError:
        return None
    return Cider
