"""Sweeps of the settings: the fixed threshold, the budget, the target rate, and budget by target rate.

A sweep is often run on fewer images than the main comparison; each table compares on common images and says
how many they are.
"""

from __future__ import annotations

from rcr_core.findings.evidence import Evidence, on_common
from rcr_core.findings.kinds import REFERENCE
from rcr_core.findings.measures import Rows, average, having, mean, mean_cost, objects_right
from rcr_core.findings.table import Cell, Column, Table
from rcr_core.findings.wording import images

_POLICY = Column("policy", "policy", "text")
_IMAGES = Column("images", "images", "count")
_RESULTS = (
    Column("refresh_rate", "refresh rate", "share", "layer-steps that re-selected"),
    Column("reads", "reads", "number", "vectors per KV head and layer-step, by formula at the realised rate"),
    Column("fidelity", "fidelity", "score", "ROUGE-L F1 against the uncompressed run"),
    Column("objects_right", "objects right", "share", "objects of the scenes with all four attributes right"),
)


def thresholds_table(evidence: Evidence, seed: int = 0) -> Table | None:
    """The fixed threshold over tau0, and RCR at the base settings on the same images as last row."""
    swept = {tau0: _scored(rows) for (tau0,), rows in evidence.varied("threshold", "tau0").items()}
    found = on_common({**swept, "rcr": _scored(evidence.of("rcr"))})
    rcr = found.pop("rcr", None)
    if len(found) < 2:
        return None
    rows = [("threshold", tau0, *_results(rows, seed)) for tau0, rows in found.items()]
    if rcr:
        rows.append(("rcr", evidence.base["tau0"], *_results(rcr, seed)))
    columns = (_POLICY, Column("tau0", "tau0", "number"), _IMAGES, *_RESULTS)
    note = (
        f"{_images(found)} RCR, where it stands below, starts from the tau0 of its row and steers tau to rho "
        f"{evidence.base['rho']:g}. Rows with other refresh rates read other amounts: hold fidelity against "
        "both."
    )
    return Table("thresholds", "Fixed threshold swept", columns, tuple(rows), note).trimmed()


def rates_table(evidence: Evidence, seed: int = 0) -> Table | None:
    """RCR over the target rate rho."""
    found = on_common({rho: _scored(rows) for (rho,), rows in evidence.varied("rcr", "rho").items()})
    if len(found) < 2:
        return None
    columns = (Column("rho", "rho", "share", "target refresh rate"), _IMAGES, *_RESULTS)
    rows = tuple((rho, *_results(rows, seed)) for rho, rows in found.items())
    return Table("rates", "Target rate swept", columns, rows, _images(found)).trimmed()


def budgets_table(evidence: Evidence, seed: int = 0) -> Table | None:
    """Fidelity and refresh rate of every policy at every budget `select`."""
    found = on_common(
        {
            (policy, select): _scored(rows)
            for policy in evidence.all_policies
            if policy != REFERENCE
            for (select,), rows in evidence.varied(policy, "select").items()
        }
    )
    selects = sorted({select for _, select in found})
    if len(selects) < 2:
        return None
    columns = (
        _POLICY,
        _IMAGES,
        *(Column(f"fidelity_{select}", f"fidelity at {select}", "score") for select in selects),
        *(Column(f"refresh_{select}", f"refresh rate at {select}", "share") for select in selects),
    )
    rows = tuple(
        _budget(policy, [found.get((policy, select), {}) for select in selects], seed)
        for policy in dict.fromkeys(policy for policy, _ in found)
    )
    note = f"{_images(found)} The budget is select, the entries kept per KV head besides the window."
    return Table("budgets", "Budget swept", columns, rows, note).trimmed()


def grid_table(evidence: Evidence, seed: int = 0) -> Table | None:
    """RCR at every budget and target rate, BACON beside it; None where only one at a time was varied."""
    swept = {pair: _scored(rows) for pair, rows in evidence.varied("rcr", "select", "rho").items()}
    base = evidence.base
    if all(select == base["select"] or rho == base["rho"] for select, rho in swept):
        return None
    static = {(select, None): _scored(rows) for (select,), rows in evidence.varied("bacon", "select").items()}
    chosen = {select for select, rho in swept if rho != base["rho"]}
    found = on_common({pair: rows for pair, rows in {**static, **swept}.items() if pair[0] in chosen})
    rates = [None, *sorted({rho for _, rho in found if rho is not None})]
    names = ["bacon" if rho is None else f"{rho:g}" for rho in rates]
    heads = ["bacon" if rho is None else f"rho {rho:g}" for rho in rates]
    columns = (
        Column("select", "select", "count", "entries kept per KV head"),
        _IMAGES,
        *(
            Column(f"fidelity_{name}", f"fidelity, {head}", "score")
            for name, head in zip(names, heads, strict=True)
        ),
        *(
            Column(f"objects_{name}", f"objects right, {head}", "share")
            for name, head in zip(names, heads, strict=True)
        ),
    )
    rows = tuple(
        _budget(select, [found.get((select, rho), {}) for rho in rates], seed, objects_right)
        for select in sorted({select for select, _ in found})
    )
    note = f"{_images(found)} RCR at each budget and target rate; BACON selects once. A blank was not run."
    return Table("grid", "Budget by target rate", columns, rows, note).trimmed()


def _refresh_rate(rows: Rows) -> float | None:
    return mean(rows, "refresh_rate")


def _budget(first: str | int, cells: list[Rows], seed: int, other=_refresh_rate) -> tuple[Cell, ...]:
    """A row over several settings: fidelity at each, and then another number at each."""
    return (
        first,
        max(map(len, cells)),
        *(average(rows, "fidelity", seed) for rows in cells),
        *map(other, cells),
    )


def _results(rows: Rows, seed: int) -> tuple[Cell, ...]:
    return (
        len(rows),
        mean(rows, "refresh_rate"),
        mean_cost(rows, "reads"),
        average(rows, "fidelity", seed),
        objects_right(rows),
    )


def _scored(rows: Rows) -> Rows:
    return having(rows, "fidelity")


def _images(found: dict) -> str:
    count = len(next(iter(found.values())))
    return f"All on the same {images(count).removeprefix('1 ')}."
