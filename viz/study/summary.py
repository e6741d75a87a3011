"""A study in a few sentences: which policy stays nearest, what it reads, and RCR against BACON.

No difference is told that the images do not show: policies whose paired interval holds 0 are not told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rcr_core.findings import Evidence, Interval
from rcr_core.findings.evidence import uneven
from rcr_core.findings.kinds import ORACLE, REFERENCE
from rcr_core.findings.measures import Rows, after_selection, average, gain, mean, mean_cost
from rcr_core.findings.table import Cell
from rcr_core.findings.wording import by_prefill, images
from viz.study.names import title_of
from viz.study.numbers import kept, shown

_PER = " vectors read per KV head and layer-step"
_SHORTLY = " reads"


def summary_html(evidence: Evidence) -> str:
    """Sentences on the main comparison; empty where no run has a fidelity."""
    columns = evidence.main()
    # The oracle has read the uncompressed answer, which all others are held against.
    rivals = {policy: rows for policy, rows in columns.items() if policy not in (REFERENCE, ORACLE)}
    found = {
        policy: fidelity
        for policy, rows in rivals.items()
        if (fidelity := average(rows, "fidelity")) is not None
    }
    if not found:
        return ""
    said = [_nearest(columns, found)]
    if "rcr" in found:
        said += _of_rcr(evidence, columns, found, _bold("rcr") in said[0])
    if uneven(columns):
        said.append("Not all policies have run on the same images yet.")
    tokens = max(after_selection(columns[policy]) for policy in found)
    if tokens <= 1:
        said.append(f"But {by_prefill(tokens)}.")
    return f'<p class="lead">{" ".join(one for one in said if one)}</p>'


def _nearest(columns: dict[str, Rows], found: dict[str, Cell]) -> str:
    """Who stays nearest to the uncompressed run, where one does."""
    best, *others = sorted(found, key=lambda policy: -_middle(found[policy]))
    over = f"Over {images(len(columns[best]))}"
    if not others:
        return f"{over}, {_bold(best)} comes to fidelity {_score(found[best])}{_reads(columns[best])}."
    tied = [policy for policy in found if _plain(found[policy]) == _plain(found[best])]
    if len(tied) > 1:
        return f"{over}, {_list(tied)} come to the same fidelity: {_plain(found[best])}."
    second = others[0]
    lead = gain(columns[best], columns[second])
    if not _clear(lead):
        return (
            f"{over}, no policy is clearly the nearest to the uncompressed run: {_bold(best)} comes to "
            f"fidelity {_score(found[best])}{_reads(columns[best])}, {_bold(second)} to "
            f"{_score(found[second])}{_reads(columns[second], short=True)}."
        )
    return (
        f"{over}, {_bold(best)} stays nearest to the uncompressed run: fidelity "
        f"{_score(found[best])}{_reads(columns[best])}."
    )


def _of_rcr(evidence: Evidence, columns: dict[str, Rows], found: dict[str, Cell], named: bool) -> list[str]:
    """`named` where its fidelity has been told already."""
    rows = columns["rcr"]
    said = [] if named else [f"{_bold('rcr')} comes to {_score(found['rcr'])}{_reads(rows, short=True)}."]
    if "bacon" in found and _plain(found["bacon"]) != _plain(found["rcr"]):
        said.append(_against_bacon(gain(rows, columns["bacon"])))
    rate = mean(rows, "refresh_rate")
    if rate is not None:
        target = shown(evidence.base["rho"], "share")
        said.append(kept(f"RCR re-selects in {shown(rate, 'share')} of layer-steps (target {target})."))
    return [*said, _cheaper(columns, found)]


def _against_bacon(difference: Cell) -> str:
    """The paired difference in words. An interval around 0 does not tell the two apart."""
    if difference is None:
        return ""
    if not _clear(difference):
        return f"RCR shows no clear difference to BACON: {_score(difference)}, paired by image."
    middle = _middle(difference)
    amount, way = (difference, "above") if middle >= 0 else (_negated(difference), "below")
    return f"RCR is <b>{_score(amount)} {way} BACON</b>, paired by image."


def _cheaper(columns: dict[str, Rows], found: dict[str, Cell]) -> str:
    """Policies that are nearer than RCR at no more reads, said plainly."""
    reads = {policy: mean_cost(columns[policy], "reads") for policy in found}
    rivals = [
        policy
        for policy in found
        if policy != "rcr"
        and None not in (reads[policy], reads["rcr"])
        and reads[policy] <= reads["rcr"]
        and _plain(found[policy]) != _plain(found["rcr"])
    ]
    if not rivals:
        return ""
    higher = [policy for policy in rivals if _middle(found[policy]) > _middle(found["rcr"])]
    higher.sort(key=lambda policy: -_middle(found[policy]))
    nearer = [policy for policy in higher if _clear(gain(columns[policy], columns["rcr"]))]
    unclear = [policy for policy in higher if policy not in nearer]

    def told(policies: Sequence[str]) -> str:
        return ", ".join(
            f"{_name(policy)} ({_plain(found[policy])} at {shown(reads[policy], 'number')} reads)"
            for policy in policies
        )

    if not higher:
        return "No other policy that reads as little or less comes as near."
    said = [f"Nearer at no more reads: {told(nearer)}."] if nearer else []
    if unclear:
        said.append(f"As near or nearer at no more reads, without a clear difference: {told(unclear)}.")
    return " ".join(said)


def _clear(difference: Cell) -> bool:
    """Whether a paired difference has one sign for all of its interval; of one image nothing is clear."""
    return isinstance(difference, Interval) and not difference.low <= 0 <= difference.high


def _reads(rows: Rows, short: bool = False) -> str:
    reads = mean_cost(rows, "reads")
    return "" if reads is None else f" at {shown(reads, 'number')}{_SHORTLY if short else _PER}"


def _middle(cell: Cell) -> float:
    return cell.mean if isinstance(cell, Interval) else float(cell)


def _negated(cell: Interval) -> Interval:
    return Interval(-cell.mean, -cell.high, -cell.low, cell.count)


def _plain(cell: Cell) -> str:
    return shown(_middle(cell), "score")


def _score(cell: Cell) -> str:
    return shown(cell, "score")


def _list(policies: Sequence[str]) -> str:
    *first, last = map(_bold, policies)
    return f"{', '.join(first)} and {last}"


def _bold(policy: str) -> str:
    return f"<b>{_name(policy)}</b>"


def _name(policy: str) -> str:
    return escape(title_of(policy))
