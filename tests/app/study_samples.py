"""What the tests of a server's studies share."""

from __future__ import annotations

from pathlib import Path

from rcr_core.bundled.examples import EXAMPLES_FOLDER
from rcr_core.findings import ResultsFile
from rcr_core.serving import Workbench
from rcr_core.serving.studies import Studies

PICTURE = (EXAMPLES_FOLDER / "1-four-objects.png").read_bytes()
TINY = {"count": 1, "policies": ["full"], "max_new_tokens": 1}
LONG = {"count": 50, "policies": ["full", "rcr"]}


def idle() -> Studies:
    """Studies on a model that is never loaded."""
    return Studies(Workbench())


def published(folder: Path, rows, name: str = "made") -> Path:
    """A results file with these rows, as every server can be given one."""
    results = ResultsFile(folder / name / "results.jsonl")
    for row in rows:
        results.add(row)
    results.close()
    return results.path
