"""Whether drift and the length of outputs go together, so that what follows one may follow the other."""

from __future__ import annotations

import math

from rcr_core.findings.measures import Rows, having, numbers
from rcr_core.findings.statistics import spearman

_CLEAR = 1.96  # standard deviations of Spearman's rank correlation where there is none


def length_confound(rcr: Rows) -> str:
    """A sentence where RCR's mean drift and its number of tokens go together beyond chance; else empty."""
    there = having(rcr, "mean_drift")
    found = spearman(numbers(there, "mean_drift"), numbers(there, "steps"))
    if math.isnan(found) or abs(found) * math.sqrt(len(there) - 1) < _CLEAR:
        return ""
    told = f"{found:.2f}".replace("-", "−")
    return (
        " Drift and length are not apart here: over images Spearman's rank correlation of mean drift with "
        f"the number of tokens, both of RCR, is {told}. Where drift changes within a run, a run that ends "
        "early or late has another mean drift, and another fidelity, for that alone: what goes with drift "
        "here may come of length."
    )
