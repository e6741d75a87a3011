"""The studies of a server: those that everyone sees, and the small ones that a person starts on the page."""

from rcr_core.serving.studies.asked import DATA, MAX_IMAGES, MAX_TASKS, SETTINGS, choices
from rcr_core.serving.studies.held import HeldStudy
from rcr_core.serving.studies.limits import StudyLimits
from rcr_core.serving.studies.snapshot import Snapshot
from rcr_core.serving.studies.studies import SHIPPED, Studies

__all__ = [
    "DATA",
    "MAX_IMAGES",
    "MAX_TASKS",
    "SETTINGS",
    "SHIPPED",
    "HeldStudy",
    "Snapshot",
    "Studies",
    "StudyLimits",
    "choices",
]
