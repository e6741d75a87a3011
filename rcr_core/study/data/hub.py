"""Public sets from the hub, through the optional package `datasets`.

Only parquet files are asked for, so no code of a repository is ever run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcr_core.errors import StudyError


def hub_rows(repository: str, split: str, name: str) -> HubRows:
    """The rows of one split; its files are fetched once and then lie in the package's cache.

    Raises `StudyError` where the package is missing or the hub does not give the set.
    """
    try:
        import datasets  # noqa: PLC0415 - optional
    except ImportError:
        raise StudyError(
            f"{name} needs the package datasets", f"pip install datasets, or {_elsewhere(name, repository)}"
        ) from None
    try:
        # Naming the files keeps the other splits, which are far larger, from being fetched too.
        rows = datasets.load_dataset(repository, data_files={split: f"**/{split}-*.parquet"}, split=split)
    except Exception as error:  # whatever the package, its transport and its decoders raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise StudyError(
            f"{name} cannot be had from the hub: {reason}",
            f"check the connection and HF_HUB_OFFLINE, or {_elsewhere(name, repository)}",
        ) from error
    encoded = datasets.Image(decode=False)
    for column, kind in rows.features.items():
        if isinstance(kind, datasets.Image):
            rows = rows.cast_column(column, encoded)
    return HubRows(rows)


class HubRows:
    """The rows of a set of the package `datasets`, which lie on the disk; pictures stay encoded."""

    def __init__(self, rows: Any):
        self._rows = rows
        self._columns: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def require(self, columns: Sequence[str], name: str) -> None:
        """Raises `StudyError` where one of the columns is missing."""
        for column in columns:
            if column not in self._rows.column_names:
                raise StudyError(
                    f"{name} has no column {column}", f"its columns are {', '.join(self._rows.column_names)}"
                )

    def values(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """The cells of small columns, row by row."""
        return self._rows.select_columns(list(columns)).to_list()

    def cell(self, column: str, index: int) -> Any:
        """One value."""
        if column not in self._columns:
            self._columns[column] = self._rows.select_columns([column])
        return self._columns[column][index][column]


def _elsewhere(name: str, repository: str) -> str:
    return f"give {name}@DIR, a folder with the parquet files of {repository}"
