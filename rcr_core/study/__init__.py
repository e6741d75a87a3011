"""Studies: many images under many policies and settings, one row of findings per finished run."""

from rcr_core.study.data import DataSet, Sample, open_data
from rcr_core.study.decoding import Decoder, Failure
from rcr_core.study.runner import Progress, Study
from rcr_core.study.task import Part, Task, plan
from rcr_core.study.variants import SWEEPS, Variant, of_policies, sweep
from rcr_core.study.workers import InlineWorkers, ModelChoice, ProcessWorkers, RayWorkers

__all__ = [
    "SWEEPS",
    "DataSet",
    "Decoder",
    "Failure",
    "InlineWorkers",
    "ModelChoice",
    "Part",
    "ProcessWorkers",
    "Progress",
    "RayWorkers",
    "Sample",
    "Study",
    "Task",
    "Variant",
    "of_policies",
    "open_data",
    "plan",
    "sweep",
]
