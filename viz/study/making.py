"""How a study was made: model, data, settings, versions, and the command that repeats it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from rcr_core.findings import Evidence, Row

_FEW = 3  # values that are listed in full


def making_html(evidence: Sequence[Evidence], command: str, failures: Sequence[str] = ()) -> str:
    """What a reader needs to repeat a study, and which of its tasks failed."""
    parts = []
    for one in evidence:
        head = f"<h4>{escape(one.model)} on {escape(one.data)}</h4>" if len(evidence) > 1 else ""
        parts.append(head + _terms(_facts(one)))
    if command:
        parts.append(f"<h4>Command</h4><pre>{escape(command)}</pre>")
    if failures:
        items = "".join(f"<li>{escape(one)}</li>" for one in failures)
        parts.append(f'<h4>Tasks that failed: {len(failures)}</h4><ul class="failed">{items}</ul>')
    return "".join(parts)


def _facts(evidence: Evidence) -> dict[str, str]:
    rows = evidence.rows
    settings = ", ".join(f"{name} {_value(value)}" for name, value in sorted(evidence.base.items()))
    return {
        "Model": f"{evidence.model}, {evidence.dtype}",
        "Weights": evidence.weights,
        "Device": _listed(row.device for row in rows),
        "Data": evidence.data,
        "Images": str(len({row.sample for row in rows})),
        "Runs": f"{len(rows)}, {_hours(sum(row.seconds for row in rows))} of decoding",
        "Prompt": _listed(row.prompt for row in rows),
        "New tokens": f"at most {_listed(str(row.max_new_tokens) for row in rows)}",
        "Ended by": ", ".join(
            f"{reason} ({count})" for reason, count in Counter(row.stop_reason for row in rows).most_common()
        ),
        "Main comparison": settings,
        "Versions": _versions(rows),
    }


def _versions(rows: Iterable[Row]) -> str:
    found = Counter(
        ", ".join(f"{name} {version}" for name, version in sorted(row.versions.items())) for row in rows
    )
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{versions} ({count} runs)" for versions, count in found.most_common())


def _listed(values: Iterable[str]) -> str:
    """Distinct values, the most frequent first."""
    found = [value for value, _ in Counter(values).most_common()]
    more = len(found) - _FEW
    return "; ".join(found[:_FEW]) + (f"; and {more} others" if more > 0 else "")


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _hours(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _terms(facts: dict[str, str]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in facts.items() if fact)
    return f"<dl>{items}</dl>"
