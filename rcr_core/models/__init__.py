"""Everything that knows a model family: loading a checkpoint, making its inputs from images and a prompt."""

from rcr_core.models.fingerprint import fingerprint
from rcr_core.models.geometry import visual_geometry
from rcr_core.models.image_only import image_only
from rcr_core.models.images import open_image
from rcr_core.models.limits import PromptLimits
from rcr_core.models.loading import LoadedModel, load_model
from rcr_core.models.placement import Placement, pick_device
from rcr_core.models.processing import PreparedPrompt, check_length, prepare

__all__ = [
    "LoadedModel",
    "Placement",
    "PreparedPrompt",
    "PromptLimits",
    "check_length",
    "fingerprint",
    "image_only",
    "load_model",
    "open_image",
    "pick_device",
    "prepare",
    "visual_geometry",
]
