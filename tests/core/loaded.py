"""A fixture of loaded models, one per family and dtype for the whole session."""

import pytest

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.models import load_model
from tests.core.tiny import build_tiny


@pytest.fixture(scope="session")
def load(tmp_path_factory):
    """`load(family, dtype="float32", **overrides)`: a tiny checkpoint, or "bundled", loaded through the real
    path.
    """
    models = {}

    def loaded(family: str, dtype: str = "float32", **overrides):
        key = (family, dtype, *overrides.items())
        if key not in models:
            folder = MODEL_FOLDER
            if family != "bundled":
                folder = build_tiny(family, tmp_path_factory.mktemp("loaded") / family, **overrides)
            models[key] = load_model(folder, device="cpu", dtype=dtype)
        return models[key]

    return loaded
