"""Fixtures of the core's tests: one thread, tiny checkpoints built and loaded once a session."""

import shutil
from functools import cache
from pathlib import Path

import pytest
import torch

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.models import load_model
from tests.core.tiny import build_tiny

torch.set_num_threads(1)  # tiny operations; two threads on a busy machine wait for each other


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """`tiny(family, **text_config)`: the folder of a tiny checkpoint; read-only, copy it to break it."""

    @cache
    def folder(family: str, **overrides):
        return build_tiny(family, tmp_path_factory.mktemp("tiny") / family, **overrides)

    return folder


@pytest.fixture(scope="session")
def load(tiny):
    """`load(family, dtype="float32", **text_config)`: a tiny checkpoint, or "bundled", through the real path.

    The model is shared by all tests, so leave it as it is.
    """

    @cache
    def loaded(family: str, dtype: str = "float32", **overrides):
        folder = MODEL_FOLDER if family == "bundled" else tiny(family, **overrides)
        return load_model(folder, device="cpu", dtype=dtype)

    return loaded


@pytest.fixture
def broken(tiny, tmp_path):
    """`broken(family)`: a copy of a tiny checkpoint that a test may damage."""
    return lambda family="qwen2_vl": Path(shutil.copytree(tiny(family), tmp_path / "broken"))


@pytest.fixture(scope="session")
def sharded(tmp_path_factory):
    return build_tiny("qwen2_vl", tmp_path_factory.mktemp("sharded") / "shards", max_shard_size="300KB")
