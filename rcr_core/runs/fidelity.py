"""How much of another run's caption a caption keeps: ROUGE-L."""

from __future__ import annotations

from functools import lru_cache

from rouge_score.rouge_scorer import RougeScorer

_SCORER = RougeScorer(["rougeL"], use_stemmer=False)


@lru_cache(maxsize=1024)
def rouge_l(text: str, reference: str) -> float:
    """ROUGE-L F1 of a text against a reference, words as they stand; 0 where either has none."""
    return float(_SCORER.score(reference, text)["rougeL"].fmeasure)
