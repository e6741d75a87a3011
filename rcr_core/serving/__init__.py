"""What a server offers, without a word of how it is served: a model, its runs, the form, and endpoints."""

from rcr_core.serving.form import Form
from rcr_core.serving.models import Models
from rcr_core.serving.presets import PRESETS, setting_names
from rcr_core.serving.scripts import Scripts
from rcr_core.serving.workbench import Question, Workbench

__all__ = ["PRESETS", "Form", "Models", "Question", "Scripts", "Workbench", "setting_names"]
