"""The results file of a study: JSON lines, one row a finished run, appended at once and never rewritten.

Who writes it holds a lock beside it, so that no second study cuts off a line that the first is writing.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from filelock import FileLock, Timeout

from rcr_core.errors import StudyError
from rcr_core.findings.row import Row

NAME = "results.jsonl"


class ResultsFile:
    """Appends rows to a results file, and knows which tasks it already holds.

    A last line that was cut off (the study was killed while it wrote) is dropped, and its task runs again.
    Raises `StudyError` where the file cannot be read or written, or another study writes to it.
    """

    def __init__(self, path: Path):
        self.path = path
        self.rows: list[Row] = []
        # Released by whoever closes the file, which may be another thread.
        self._lock = FileLock(path.with_name(path.name + ".lock"), timeout=0, thread_local=False)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            self._file = self._resumed()
        except Timeout:
            raise StudyError(
                f"another study writes to {path}", "wait for it, or give another --out"
            ) from None
        except OSError as error:
            self._lock.release()
            raise StudyError(f"{path} cannot be written: {error.strerror}", "give another --out") from None
        except StudyError:
            self._lock.release()
            raise
        self.keys = {row.key for row in self.rows}

    def add(self, row: Row) -> bool:
        """Write a row, to the disk, before this returns. A task that is there already is left as it is."""
        if row.key in self.keys:
            return False
        try:
            self._file.write(row.to_json() + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StudyError(f"{self.path} cannot be written: {error.strerror}", "resume it later") from None
        self.keys.add(row.key)
        self.rows.append(row)
        return True

    def close(self) -> None:
        """Let others write. Everything that was added is on the disk already."""
        # What is left to be written is of an `add` that failed and said so.
        with suppress(OSError):
            self._file.close()
        self._lock.release()

    def _resumed(self) -> TextIO:
        """Read what is there, drop a cut-off last line, and open the file for more."""
        if self.path.exists():
            data = self.path.read_bytes()
            self.rows = _once(_rows(_lines(data, self.path), self.path.name))
            if (whole := data.rfind(b"\n") + 1) < len(data):
                os.truncate(self.path, whole)
        return self.path.open("a", encoding="utf-8")


def read_results(paths: Iterable[str | Path]) -> list[Row]:
    """The rows of several studies as one: of a task that is there twice, the first result counts.

    A path is a results file, also gzipped, or a folder that holds one. Raises `StudyError`.
    """
    return _once(row for path in paths for row in _read(_file_of(Path(path))))


def _once(rows: Iterable[Row]) -> list[Row]:
    """Of every task the first row."""
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(row.key, row)
    return list(found.values())


def _file_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in (NAME, NAME + ".gz"):
        if (path / name).exists():
            return path / name
    raise StudyError(f"there is no {NAME} in {path}", "give a results file, or the folder of a study")


def _read(path: Path) -> Iterator[Row]:
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise StudyError(
            f"there is no file {path}", "give a results file, or the folder of a study"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    return _rows(_lines(data, path), path.name)


def _lines(data: bytes, path: Path) -> list[str]:
    """The lines that have an end. Only a line feed ends one: texts hold other separators."""
    try:
        return data[: data.rfind(b"\n") + 1].decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> StudyError:
    return StudyError(f"{path} cannot be read: {error}", "give a results file of a study")


def _rows(lines: list[str], name: str) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line, parse_constant=_refused)
        except ValueError:
            raise StudyError(f"line {number} of {name} is not JSON", "the file is damaged") from None
        if not isinstance(values, dict):
            raise StudyError(f"line {number} of {name} is no row", "give a results file of a study")
        yield Row.from_dict(values)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number of a row")
