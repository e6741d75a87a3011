"""Numbers as people read them: with the same digits in the report, in LaTeX and in the hover texts."""

from __future__ import annotations

import math
from html import escape

from rcr_core.findings import Interval
from rcr_core.findings.table import Cell, Kind

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
_THIN = "\N{NARROW NO-BREAK SPACE}"  # between thousands


def shown(cell: Cell, kind: Kind) -> str:
    """A cell as text: an interval with its ends in brackets, a dash where there is no value."""
    if isinstance(cell, Interval):
        mean = shown(cell.mean, kind)
        return f"{mean} {ends(cell, kind)}".rstrip()
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return NONE
    if isinstance(cell, str):
        return cell
    return _number(float(cell), kind)


def kept(text: str) -> str:
    """Text as HTML, in which per cent signs stay with their numbers."""
    return escape(text).replace(" %", "&nbsp;%")


def ends(cell: Interval, kind: Kind) -> str:
    """The ends of an interval in brackets; empty where there is none."""
    if math.isnan(cell.low):
        return ""
    low, high = (_number(end, kind).removesuffix(" %") for end in (cell.low, cell.high))
    return f"[{low}, {high}]"


def _number(value: float, kind: Kind) -> str:
    if math.isinf(value):
        return ("" if value > 0 else MINUS) + "\N{INFINITY}"
    text = {"score": _score, "share": _share, "count": _count}.get(kind, _significant)(value)
    return text.replace("-", MINUS)


def _score(value: float) -> str:
    """Three digits without a leading nought, as rates and fidelities are printed."""
    text = f"{value:.3f}"
    if text == "-0.000":
        text = "0.000"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _share(value: float) -> str:
    """Per cent, with a digit more near 0 and 100, where it says something."""
    rest = min(abs(100 * value), abs(100 - 100 * value))
    digits = 0 if rest >= 10 or rest < 0.005 else 1 if rest >= 0.1 else 2
    return f"{100 * value:.{digits}f} %"


def _count(value: float) -> str:
    return f"{value:,.0f}".replace(",", _THIN) if value == round(value) else f"{value:.1f}"


def _significant(value: float) -> str:
    """Three significant digits, fewer where that is all there is; far from 1 in powers of ten."""
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2e}"
    size = math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:.{max(2 - size, 0)}f}"
    whole = "." in text and math.isclose(float(text), value, rel_tol=1e-9)
    return text.rstrip("0").rstrip(".") if whole else text
