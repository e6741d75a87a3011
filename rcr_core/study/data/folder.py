"""A folder of images, each with the same prompt."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from rcr_core.errors import StudyError
from rcr_core.study.data.pictures import SUFFIXES, picture_in_file, printable
from rcr_core.study.data.sample import DEFAULT_PROMPT, DEFAULT_TOKENS, Sample, Source


def folder_source(folder: Path) -> Source:
    """The pictures that lie in a folder itself, by name. Raises `StudyError` where there are none.

    An id is the file's name and the begin of its SHA-256, so that a changed file is another sample.
    """
    try:
        files = sorted(path for path in folder.iterdir() if _is_picture(path))
    except OSError as error:
        raise StudyError(f"{folder} cannot be read: {error.strerror}", "check its permissions") from None
    if not files:
        raise StudyError(
            f"there are no images in {folder}",
            f"it should hold {', '.join(SUFFIXES)} files, not in subfolders; the parquet files of a public "
            "set are given as NAME@DIR",
        )
    return Source(printable(folder.resolve()), len(files), lambda index: _sample(files[index]))


def _is_picture(path: Path) -> bool:
    # A hidden file with such a suffix is what some systems write beside the picture itself.
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()


def _sample(path: Path) -> Sample:
    name = printable(path)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StudyError(f"{name} cannot be read: {error.strerror}", "check its permissions") from None
    own = f"{name} {digest[:8]}"
    return Sample(own, DEFAULT_PROMPT, partial(picture_in_file, path, own), DEFAULT_TOKENS)
