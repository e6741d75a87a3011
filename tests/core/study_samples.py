"""Small studies for tests: bundled scenes with short captions, and a study run in this process."""

from __future__ import annotations

from dataclasses import replace

from rcr_core.bundled.scenes import CAPTION_PROMPT
from rcr_core.captioning import Captioner
from rcr_core.findings import ResultsFile, Row
from rcr_core.study.data import DataSet, open_data
from rcr_core.study.decoding import Decoder
from rcr_core.study.runner import Study
from rcr_core.study.task import Task
from rcr_core.study.workers import InlineWorkers

CAPTION = CAPTION_PROMPT


def caption_samples(count: int, tokens: int = 40) -> DataSet:
    """Scenes whose captions are cut short, so that a test is quick."""
    data = open_data(f"SCENES:{count}")
    return DataSet(data.name, [replace(sample, max_new_tokens=tokens) for sample in data.samples])


def run_study(captioner: Captioner, tasks: list[Task], path, told=lambda progress: None) -> list[Row]:
    results = ResultsFile(path)
    try:
        Study(tasks, results, InlineWorkers(Decoder(captioner)), told).run()
    finally:
        results.close()
    return results.rows


def without_time(rows: list[Row]) -> list[Row]:
    """Rows as they are the same every time."""
    return [replace(row, seconds=0.0) for row in rows]
