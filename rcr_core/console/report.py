"""`report`: the findings of one or several studies as a page, and as CSV and LaTeX tables."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Sequence
from pathlib import Path

from rcr_core.console.text_table import as_text
from rcr_core.errors import StudyError
from rcr_core.findings import Row, evidence_of, read_results
from rcr_core.findings.fidelity import fidelity_table
from viz.study.report import write_report


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "report", help="write the report of a study, or of several as one", description=__doc__
    )
    parser.add_argument(
        "results", nargs="+", metavar="RESULTS", help="results files (also .gz), or folders of studies"
    )
    parser.add_argument(
        "--out", default="results", metavar="FOLDER", help="the report goes here (default: results)"
    )
    parser.add_argument(
        "--merged", metavar="FILE", help="also write all rows as one results file, gzipped if it ends in .gz"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    rows = read_results(options.results)
    if not rows:
        raise StudyError("there is no finished run in these results", "run the study first")
    if options.merged:
        _save(rows, Path(options.merged))
    write(rows, Path(options.out))


def write(rows: Sequence[Row], folder: Path, command: str = "", failures: Sequence[str] = ()) -> None:
    """Print the main table of each data set, and write everything to a folder."""
    for evidence in evidence_of(rows):
        print(f"\n{evidence.data}, {evidence.model}\n")
        print(as_text(fidelity_table(evidence)))
    paths = write_report(rows, folder, command, failures=failures)
    print(f"\nreport: {paths[0]}, with {len(paths) - 1} tables as CSV and LaTeX beside it")


def _save(rows: Sequence[Row], path: Path) -> None:
    """Not appended to but written anew, the same bytes for the same rows."""
    data = "".join(row.to_json() + "\n" for row in rows).encode()
    try:
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}", "give another --merged") from None
