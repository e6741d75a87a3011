"""The studies as a list and one by one: started, followed, stopped; and a row opened as a pair of runs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rcr_core.errors import ImageError
from rcr_core.serving.studies import HeldStudy, Studies, choices
from rcr_core.web.access import owner_of
from rcr_core.web.bodies import Bodies
from rcr_core.web.findings import FindingRoutes, StudyViews
from rcr_core.web.query import seconds
from rcr_core.web.refusal import Refusal
from rcr_core.web.uploads import clean_label

MAX_WAIT = 10.0  # seconds
MAX_PICTURE = 16 << 20  # bytes
_MAX_REQUEST = 64 << 10  # bytes of a study's description
_POLL = 0.1


class StudyRoutes:
    """`findings` are the routes of what the studies found."""

    def __init__(self, studies: Studies, views: StudyViews):
        self.findings = FindingRoutes(studies, views)
        self._studies = studies
        self._pictures = Bodies(MAX_PICTURE, "save the picture smaller")
        self._requests = Bodies(_MAX_REQUEST, "ask for fewer things")

    async def list(self, request: Request) -> Response:
        owner = owner_of(request)
        studies = await run_in_threadpool(self._studies.list, owner)
        told = [study.summary(owner) for study in studies]
        return JSONResponse({"studies": told, "choices": choices(self._studies.workbench)})

    async def start(self, request: Request) -> Response:
        owner = owner_of(request)
        async with self._requests.of(request) as data:
            values = _json(data)
        study = await run_in_threadpool(self._studies.start, owner, values)
        return JSONResponse(study.summary(owner), 201)

    async def picture(self, request: Request) -> Response:
        owner = owner_of(request)
        name = clean_label(request.query_params.get("name", ""), "picture")
        async with self._pictures.of(request) as data:
            try:
                picture = await run_in_threadpool(self._studies.shelf.put, owner, name, data)
            except ImageError as error:
                raise Refusal(415, error.message, error.hint) from None
        return JSONResponse({"picture": picture.key, "name": name}, 201)

    async def forget_picture(self, request: Request) -> Response:
        owner = owner_of(request)
        shelf = self._studies.shelf
        shelf.take(shelf.find(owner, [request.path_params["picture"]]))
        return Response(status_code=204)

    async def one(self, request: Request) -> Response:
        owner = owner_of(request)
        study = self._study(request)
        wait = seconds(request, "wait", MAX_WAIT)
        known = request.query_params.get("stamp", "")
        if wait:
            await _news(request, study, known, wait)
        return JSONResponse(study.summary(owner))

    async def stop(self, request: Request) -> Response:
        owner = owner_of(request)
        study = self._study(request)
        if study.public:
            raise Refusal(403, "this study is for everyone", "it is over, and stays")
        await run_in_threadpool(study.stop)
        return JSONResponse(study.summary(owner))

    async def drop(self, request: Request) -> Response:
        if self._study(request).public:
            raise Refusal(403, "this study is for everyone", "it is over, and stays")
        await run_in_threadpool(self._studies.drop, request.path_params["id"], owner_of(request))
        return Response(status_code=204)

    async def open(self, request: Request) -> Response:
        study, owner = self._study(request), owner_of(request)
        opened = await run_in_threadpool(self._studies.open, study, request.path_params["key"], owner)
        return JSONResponse(opened)

    def _study(self, request: Request) -> HeldStudy:
        return self._studies.get(request.path_params["id"], owner_of(request))


async def _news(request: Request, study: HeldStudy, known: str, wait: float) -> None:
    """Returns once the study stands otherwise than `known`, after `wait` seconds, or when nobody waits."""
    clock = asyncio.get_running_loop().time
    until = clock() + wait
    while study.stamp == known and not study.finished:
        if clock() >= until or await request.is_disconnected():
            return
        await asyncio.sleep(_POLL)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Refusal(
            400, "a study must be described in JSON", "send an object of names and values"
        ) from None
