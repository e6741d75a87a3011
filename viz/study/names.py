"""What the policies of a study are called in figures, and in heads of tables."""

from __future__ import annotations

from html import escape

from rcr_core.findings import Column
from rcr_core.findings.kinds import TITLES, title_of

__all__ = ["POLICY", "TITLES", "head_of", "short_title", "title_of"]

POLICY = "policy"  # the column of tables that names one
# Beside a mark or at the end of a curve there is no room for the whole title.
_SHORT = {"oracle": "Oracle", "exact": "Exact", "threshold": "Fixed tau0"}
# Columns `over_bacon`, `rate_rcr`, ...
_ABOUT_POLICIES = (
    "",
    "over",
    "rate",
    "fidelity",
    "objects",
    "steps",
)


def short_title(policy: str) -> str:
    """The title as it stands inside a figure, where plotly reads some HTML."""
    return _SHORT.get(policy, escape(title_of(policy), quote=False))


def head_of(column: Column) -> str:
    """The head of a column, with the title of the policy that it is about."""
    about, _, policy = column.id.rpartition("_")
    if policy in TITLES and about in _ABOUT_POLICIES and column.head.endswith(policy):
        return column.head.removesuffix(policy) + short_title(policy)
    return column.head
