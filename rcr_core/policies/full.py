"""The uncompressed reference: every entry is kept."""

from __future__ import annotations

from rcr_core.policies.base import Policy


class Full(Policy):
    name = "full"
    title = "Uncompressed"
    summary = "keeps everything: the uncompressed reference"

    edits = ()

    def keeps_all(self, layer: int, prefix: int) -> bool:
        return True
