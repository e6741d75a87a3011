"""Small data sets on the disk: pictures, JSON lines, and parquet files in the layouts of the public sets."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from PIL import Image
from pyarrow import parquet


def png(shade: int = 0) -> bytes:
    """A small grey picture, as the bytes of its file."""
    file = io.BytesIO()
    Image.new("RGB", (16, 16), (shade, shade, shade)).save(file, "PNG")
    return file.getvalue()


def write_lines(path: Path, *rows: Any) -> str:
    """A JSON lines file; a row that is a string stands there as it is."""
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return str(path)


def write_parquet(path: Path, columns: dict[str, Any], **options) -> str:
    """A parquet file; a column is a list or an Arrow array."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path, **options)
    return str(path)


def write_hub_file(path: Path, columns: dict[str, list]) -> None:
    """A parquet file as the hub holds it, where a column of images says that it is one."""
    rows = datasets.Dataset.from_dict(columns)
    for column, values in columns.items():
        if isinstance(values[0], dict):
            rows = rows.cast_column(column, datasets.Image())
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.to_parquet(path)


def stored(*pictures: bytes) -> list[dict[str, Any]]:
    """Cells as the hub stores images."""
    return [{"bytes": data, "path": f"{index}.png"} for index, data in enumerate(pictures)]


TEXTCAPS = {
    "image_id": ["0a", "0b", "0c"],
    "caption_str": [["A red sign.", "A sign."], ["A book."], ["A cup.", "A mug.", "A cup of tea."]],
    "image": stored(png(1), png(2), png(3)),
}
DETAILCAPS = {
    "image": ["coco/1.jpg", "sam/2.jpg"],
    "binary": [png(4), png(5)],
    "GT_Caption_GPT4O": ["o one", "o two"],
    "GT_Caption_GPT4V": ["v one", None],
    "GT_Caption_Gemini15Pro": ["g one", "g two"],
    "source": ["coco", "sam"],
}
TEXTVQA = {
    "question_id": [34602, 34603],
    "image_id": ["003a8ae2ef43b901", "003a8ae2ef43b901"],
    "question": ["what is the brand of this camera?", "what does the sign of NASA say?"],
    "answers": [["dakota"] * 7 + ["clos culombu", "dakota digital", "nous"], ["stop"] * 10],
    "image": stored(png(6), png(6)),
}
