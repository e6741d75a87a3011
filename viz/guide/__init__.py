"""The texts of the page's guide, as Markdown."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SECTIONS = ("tour", "glossary", "keys", "limits", "trace-format")


def guide_sections() -> dict[str, str]:
    """The Markdown of every section by its name, in the order in which a newcomer reads them."""
    return {name: (FOLDER / f"{name}.md").read_text(encoding="utf-8") for name in SECTIONS}
