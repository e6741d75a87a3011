"""Who does the tasks of a study: this process, processes of this machine, or actors of a Ray cluster."""

from rcr_core.study.workers.base import Done, Lost, ModelChoice, Workers
from rcr_core.study.workers.inline import InlineWorkers
from rcr_core.study.workers.processes import ProcessWorkers
from rcr_core.study.workers.ray_actors import RayWorkers

__all__ = ["Done", "InlineWorkers", "Lost", "ModelChoice", "ProcessWorkers", "RayWorkers", "Workers"]
