"""From what a person writes after `--data` to a data set."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rcr_core.errors import StudyError
from rcr_core.study.data.folder import folder_source
from rcr_core.study.data.json_lines import json_lines_source
from rcr_core.study.data.parquet import parquet_source
from rcr_core.study.data.public import PUBLIC, public_source
from rcr_core.study.data.sample import DataSet, Source
from rcr_core.study.data.scenes import KINDS, scene_source

TABLES: dict[str, Callable[[Path], Source]] = {".jsonl": json_lines_source, ".parquet": parquet_source}
KNOWN = (
    f"data are SCENES:N, QUESTIONS:N, a folder of images, a {' or '.join(TABLES)} file, {', '.join(PUBLIC)}, "
    "or NAME@DIR for one of these from a folder of parquet files"
)


def open_data(
    spec: str,
    limit: int | None = None,
    seed: int | None = None,
    prompt: str | None = None,
    max_new_tokens: int | None = None,
) -> DataSet:
    """The data set that `spec` names, see `KNOWN`. Pictures are not read yet.

    limit: so many samples at most, the first ones; with a `seed`, as many drawn at random, in the data set's
    order. prompt, max_new_tokens: instead of every sample's own. Raises `StudyError`.
    """
    _check("limit", limit, 1)
    _check("seed", seed, 0)
    _check("max_new_tokens", max_new_tokens, 1)
    source = _source(spec)
    own = {"prompt": prompt, "max_new_tokens": max_new_tokens}
    changes = {name: value for name, value in own.items() if value is not None}
    chosen = _chosen(source.count, limit, seed)
    return DataSet(source.name, tuple(replace(source.make(index), **changes) for index in chosen))


def _source(spec: str) -> Source:
    kind, colon, count = spec.partition(":")
    if colon and kind.lower() in KINDS:
        return scene_source(kind.lower(), count)
    name, at, folder = spec.partition("@")
    if name.lower() in PUBLIC:
        return public_source(name.lower(), folder if at else None)
    own = os.path.expanduser(spec)
    path = Path(own)
    if os.path.isdir(own):  # not of `path`, which makes nothing the current folder
        return folder_source(path)
    if not os.path.isfile(own):
        raise StudyError(f"there are no data {spec[:200]!r}: no such file, folder or set", KNOWN)
    if path.suffix.lower() not in TABLES:
        raise StudyError(f"{path.name} is not a kind of file that a study reads", KNOWN)
    return TABLES[path.suffix.lower()](path)


def _chosen(count: int, limit: int | None, seed: int | None) -> Sequence[int]:
    if limit is None or limit >= count:
        return range(count)
    if seed is None:
        return range(limit)
    return sorted(np.random.default_rng(seed).choice(count, limit, replace=False).tolist())


def _check(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise StudyError(f"{name} must be at least {least}, got {value}", "")
