"""How the server's model stands, for the head of the rail."""

from __future__ import annotations

import html
from typing import Any

_STAGES = {"configuration": "reading its configuration", "processor": "reading its processor"}


def model_state(facts: dict[str, Any]) -> str:
    """HTML of a server's facts: what is loaded and where, how far loading is, or why it failed.

    A name is told where there is one model: of several, the picker above shows it.
    """
    name = f" {html.escape(facts['model'])}" if len(facts["models"]) == 1 else ""
    if facts["state"] == "failed":
        hint = f" {_sentence(facts['hint'])}" if facts["hint"] else ""
        return f"<p class='rail-error' role='alert'>{_sentence(facts['error'])}{hint}</p>"
    if facts["state"] == "loading":
        return f"<p role='status'>Loading{name}: {_stage(facts)}</p>{_bar(facts['progress'])}"
    shape = f"{facts['layers']} layers, {facts['kv_heads']} KV heads"
    place = f"{name.strip()} on" if name else "On"
    return f"<p role='status'>{place} {facts['device']}, {facts['dtype']}: {shape}</p>"


def _sentence(text: str) -> str:
    return f"{html.escape(text[:1].upper() + text[1:])}."


def _stage(facts: dict[str, Any]) -> str:
    progress = facts["progress"]
    stage = _STAGES.get(progress["stage"], "reading its weights")
    if progress["total"] and progress["stage"] == "download":
        stage = f"downloaded {progress['done'] / 1e9:.1f} of {progress['total'] / 1e9:.1f} GB"
    elif progress["total"]:
        stage = f"{progress['done']} of {progress['total']} tensors"
    return f"{stage}, {facts['seconds']:.0f} s"


def _bar(progress: dict[str, Any]) -> str:
    """Without a value, as long as it is not known how much there is to do, the bar moves to and fro."""
    known = f" value='{progress['done']}' max='{progress['total']}'" if progress["total"] else ""
    return f"<progress{known} aria-label='loading the model'></progress>"
