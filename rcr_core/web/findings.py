"""What a study found, over the wire: its tables, figures, rows, and the files to take home."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rcr_core.findings import Column, Evidence, Interval, Row, Table
from rcr_core.findings.kinds import REFERENCE
from rcr_core.findings.overview import Section, sections
from rcr_core.findings.table import Cell, Kind
from rcr_core.serving.studies import HeldStudy, Snapshot, Studies
from rcr_core.web.access import owner_of
from rcr_core.web.downloads import attachment, clean_name
from rcr_core.web.refusal import Refusal

_MAX_DIGITS = 4
_ANALYSED_AT_ONCE = 2  # studies; others wait, and the runs of people go on meanwhile
ROW_FIELDS = (
    "key",
    "sample",
    "policy",
    "fidelity",
    "refresh_rate",
    "mean_drift",
    "diverges_at",
    "objects_right",
    "objects",
    "accuracy",
)


@dataclass(frozen=True)
class StudyViews:
    """How findings are drawn and written, by whoever may draw.

    figures       by name: plotly JSON of an evidence, None where there is nothing to draw
    report        one HTML file of rows
    csv, latex    a table as text
    shown, ends   a cell as people read it: its number, and the ends of its interval
    head          of a column, as people read it
    """

    figures: Mapping[str, Callable[[Evidence], str | None]]
    report: Callable[[Sequence[Row]], str]
    csv: Callable[[Table], str]
    latex: Callable[[Table], str]
    shown: Callable[[Cell, Kind], str]
    ends: Callable[[Interval, Kind], str]
    head: Callable[[Column], str]


class FindingRoutes:
    """Everything is computed once per study and number of rows, see `Snapshot`."""

    def __init__(self, studies: Studies, views: StudyViews):
        self._studies = studies
        self._views = views
        self._analysing = CapacityLimiter(_ANALYSED_AT_ONCE)

    async def tables(self, request: Request) -> Response:
        return JSONResponse(await self._computed(request, "tables", self._told))

    async def rows(self, request: Request) -> Response:
        return JSONResponse(await self._computed(request, "rows", _rows_told))

    async def figure(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._views.figures:
            raise Refusal(404, "there is no such figure", f"there are: {', '.join(self._views.figures)}")
        section = request.path_params["section"]

        def draw(found: Snapshot) -> str | None:
            evidence = _section(found, section).evidence
            if evidence is None:
                return None
            return found.remember(f"{section} {name}", lambda: self._views.figures[name](evidence))

        drawn = await self._analysed(request, draw)
        return Response(drawn, media_type="application/json") if drawn else Response(status_code=204)

    async def table(self, request: Request) -> Response:
        section, name, suffix = (request.path_params[part] for part in ("section", "name", "suffix"))
        write = {"csv": self._views.csv, "tex": self._views.latex}.get(suffix)
        if write is None:
            raise Refusal(404, "there is no such file", "a table can be had as csv and as tex")

        def written(found: Snapshot) -> tuple[str, str]:
            part = _section(found, section)
            table = next((one for one in part.tables if one.id == name), None)
            if table is None:
                raise Refusal(404, "there is no such table", "load the study again")
            return f"{part.id}.{table.id}.{suffix}", write(table)

        file, text = await self._analysed(request, written)
        kind = "text/csv" if suffix == "csv" else "application/x-tex"
        return Response(text, media_type=kind, headers=attachment(file))

    async def results(self, request: Request) -> Response:
        study = self._study(request)
        text = await to_thread.run_sync(lambda: "".join(row.to_json() + "\n" for row in study.rows))
        headers = attachment(f"{clean_name(study.label)}.jsonl")
        return Response(text, media_type="application/x-ndjson", headers=headers)

    async def report(self, request: Request) -> Response:
        page = await self._computed(request, "report", lambda found: self._views.report(found.rows))
        headers = attachment(f"{clean_name(self._study(request).label)}.html")
        return Response(page, media_type="text/html", headers=headers)

    def _study(self, request: Request) -> HeldStudy:
        return self._studies.get(request.path_params["id"], owner_of(request))

    async def _computed(self, request: Request, name: str, make: Callable[[Snapshot], Any]) -> Any:
        return await self._analysed(request, lambda found: found.remember(name, lambda: make(found)))

    async def _analysed(self, request: Request, compute: Callable[[Snapshot], Any]) -> Any:
        found = self._study(request).snapshot()
        if not found.rows:
            raise Refusal(409, "this study has no rows yet", "the first comes when its first run is done")
        return await to_thread.run_sync(compute, found, limiter=self._analysing)

    def _told(self, found: Snapshot) -> dict[str, Any]:
        return {
            "rows": len(found.rows),
            "sections": [
                {
                    "id": part.id,
                    "title": part.title,
                    "text": part.text,
                    "figures": list(self._views.figures) if part.evidence else [],
                    "tables": [self._table(table) for table in part.tables],
                }
                for part in _sections(found)
            ],
        }

    def _table(self, table: Table) -> dict[str, Any]:
        return {
            "id": table.id,
            "title": table.title,
            "note": table.note,
            "columns": [{**vars(column), "head": self._views.head(column)} for column in table.columns],
            "rows": [
                [self._cell(cell, column) for cell, column in zip(row, table.columns, strict=True)]
                for row in table.rows
            ],
        }

    def _cell(self, cell: Cell, column: Column) -> list[Any]:
        """A cell as its text, the ends of its interval, and its number (None where it has none)."""
        if isinstance(cell, Interval):
            ends = self._views.ends(cell, column.kind)
            return [self._views.shown(cell.mean, column.kind), ends, _number(cell.mean)]
        return [self._views.shown(cell, column.kind), "", _number(cell)]


def _sections(found: Snapshot) -> list[Section]:
    return found.remember("sections", lambda: sections(found.rows, cider=False))


def _section(found: Snapshot, number: str) -> Section:
    parts = _sections(found)
    if not number.isdecimal() or len(number) > _MAX_DIGITS or int(number) >= len(parts):
        raise Refusal(404, "there is no such part of the study", "load the study again")
    return parts[int(number)]


def _rows_told(found: Snapshot) -> dict[str, Any]:
    """The rows of the main comparisons, by the number of their section: a list of `ROW_FIELDS` each."""
    parts = [part.evidence for part in _sections(found)]
    told = [
        [number, *(getattr(row, name) for name in ROW_FIELDS)]
        for number, evidence in enumerate(parts)
        if evidence is not None
        for policy in evidence.policies
        if policy != REFERENCE
        for row in evidence.of(policy).values()
    ]
    return {"fields": ["section", *ROW_FIELDS], "rows": told}


def _number(cell: Cell) -> float | None:
    there = isinstance(cell, int | float) and math.isfinite(cell)
    return float(cell) if there else None
