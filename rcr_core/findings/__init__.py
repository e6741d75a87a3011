"""What a study found: rows, the results file, statistics, and the tables and points of every figure.

Nothing here needs torch: a results file is read and drawn on any machine.
"""

from rcr_core.findings.evidence import Evidence, evidence_of
from rcr_core.findings.results import ResultsFile, read_results
from rcr_core.findings.row import Row, task_key
from rcr_core.findings.statistics import Interval
from rcr_core.findings.table import Column, Table

__all__ = [
    "Column",
    "Evidence",
    "Interval",
    "ResultsFile",
    "Row",
    "Table",
    "evidence_of",
    "read_results",
    "task_key",
]
