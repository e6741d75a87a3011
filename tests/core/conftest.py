"""Fixtures of the core's tests: no network, few threads, tiny checkpoints built once a session."""

import os
from functools import cache

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported

import pytest
import torch
import transformers

from rcr_core.models import load_model
from tests.core.tiny import build_tiny

torch.set_num_threads(2)
transformers.utils.logging.disable_progress_bar()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """`tiny(family)`: the folder of that family's tiny checkpoint; read-only, copy it to break it."""
    return cache(lambda family: build_tiny(family, tmp_path_factory.mktemp("tiny") / family))


@pytest.fixture(scope="session")
def loaded(tiny):
    """`loaded(family)`: that checkpoint as `load_model` gives it; shared, so leave it as it is."""
    return cache(lambda family: load_model(tiny(family)))
