"""Who may import whom: a module imports only from rooms of a lower rank (or from its own room)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rcr_core

ROOT = Path(__file__).resolve().parents[2]
RANKS = {
    "rcr_core.errors": 0,
    "rcr_core.out_of_memory": 1,
    "rcr_core.compatibility": 1,
    "rcr_core.settings": 1,
    "rcr_core.edits": 1,
    "rcr_core.attention_math": 1,
    "rcr_core.control": 1,
    "rcr_core.detector": 1,
    "rcr_core.trace": 1,
    "rcr_core.cost": 2,
    "rcr_core.cache": 2,
    "rcr_core.findings": 3,
    "rcr_core.policies": 3,
    "rcr_core.outcome": 4,
    "rcr_core.engine": 4,
    "rcr_core.models": 5,
    "rcr_core.captioning": 6,
    "rcr_core.bundled": 7,
    "rcr_core.bench": 8,
    "rcr_core.runs": 8,
    "rcr_core.study": 9,
    "rcr_core.serving": 10,
    "rcr_core.web": 11,
    "viz": 13,
    # Command line and page are entrances, as app.py is: they may hand what was found to whoever draws it.
    "rcr_core.console": 14,
    "rcr_core.page": 14,
    "rcr_core.__main__": 15,
    "app": 20,
}
VIZ_SEES = ("rcr_core.trace", "rcr_core.findings", "rcr_core.errors")
OUTSIDE = {
    "gradio": ("rcr_core.page", "app"),
    "plotly": ("viz", "app"),
    "pandas": ("viz", "app"),
    "starlette": ("rcr_core.web", "app"),
    "rouge_score": ("rcr_core.runs",),
    "tqdm": ("rcr_core.console",),
    "filelock": ("rcr_core.findings",),
    "ray": ("rcr_core.study",),
    "datasets": ("rcr_core.study",),
    "pyarrow": ("rcr_core.study",),
    "pycocoevalcap": ("rcr_core.findings",),
    "torch": ("rcr_core",),
    "transformers": (
        "rcr_core.cache",
        "rcr_core.engine",
        "rcr_core.models",
        "rcr_core.bundled",
        "rcr_core.bench",
    ),
}


def room(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "rcr_core" else parts[0]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> list[str]:
    """Every module that a file imports, wherever in the file it does."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module)
            if node.module in ("rcr_core", "viz"):
                found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


SOURCES = [path for folder in ("rcr_core", "viz") for path in sorted((ROOT / folder).rglob("*.py"))] + [
    ROOT / "app.py"
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_below(path):
    own = room(module_name(path))
    for name in imports(path):
        if name.split(".")[0] not in ("rcr_core", "viz", "app"):
            continue
        other = room(name)
        if other == own or other == "rcr_core":
            continue
        assert RANKS[other] < RANKS[own], f"{path} ({own}) must not import {name}"
        if own == "viz":
            assert other in VIZ_SEES, f"{path}: viz sees only what is recorded and found, not {name}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_heavy_libraries_stay_in_their_rooms(path):
    own = room(module_name(path))
    for name in imports(path):
        allowed = OUTSIDE.get(name.split(".")[0])
        assert allowed is None or own.startswith(allowed), f"{path} must not import {name}"


def test_reading_traces_and_results_needs_neither_torch_nor_transformers():
    code = (
        "import sys, rcr_core, rcr_core.trace, rcr_core.findings; "
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_public_names_are_there():
    for name in rcr_core.__all__:
        assert getattr(rcr_core, name) is not None
    with pytest.raises(AttributeError):
        rcr_core.nothing  # noqa: B018
