"""Models that a server can switch between: two small ones, and one whose weights are broken."""

from __future__ import annotations

from pathlib import Path

from tests.core.tiny import build_tiny


def three_models(root: Path) -> list[str]:
    """Folders under `root`, in this order: qwen2_vl, llava_next, broken."""
    found = [build_tiny(family, root / family) for family in ("qwen2_vl", "llava_next")]
    broken = build_tiny("qwen3_vl", root / "broken")
    (broken / "model.safetensors").write_bytes(b"nothing")
    return [str(folder) for folder in (*found, broken)]
