"""What the tests of loading share: edit a JSON file, expect a refusal."""

import json
from pathlib import Path

import pytest

from rcr_core.errors import LoadError
from rcr_core.models import load_model


def edit(path: Path, **changes) -> None:
    """Replace entries of a JSON file; None removes one."""
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def refusal(source, *words: str, **options) -> LoadError:
    """Loading must raise `LoadError` in one sentence that holds `words`, with a hint."""
    with pytest.raises(LoadError) as caught:
        load_model(source, **options)
    error = caught.value
    for word in words:
        assert word in error.message, error.message
    assert error.hint
    assert "\n" not in error.message
    return error
