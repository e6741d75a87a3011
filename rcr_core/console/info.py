"""`info`: what a trace holds."""

from __future__ import annotations

import argparse
import json

from rcr_core.console.run_table import aligned, run_table
from rcr_core.outcome import run_numbers
from rcr_core.trace import Trace, read_trace


def add_parser(commands) -> None:
    parser = commands.add_parser("info", help="print what a trace holds")
    parser.add_argument("trace", help="a .rcr file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    trace = read_trace(options.trace)
    arrays = {name: f"{value.dtype} {list(value.shape)}" for name, value in trace.arrays().items()}
    if options.json:
        meta = json.loads(trace.meta.to_json())
        print(json.dumps({**run_numbers(trace), "text": trace.text, "meta": meta, "arrays": arrays}))
        return
    print(aligned({**_origin(trace), **run_table(trace), **_history(trace)}))
    print("\nsettings  " + ", ".join(f"{name} {value}" for name, value in trace.meta.settings.items()))
    print("\narrays\n" + aligned(arrays))
    print("\ncaption\n" + trace.text)


def _origin(trace: Trace) -> dict[str, str]:
    meta = trace.meta
    images = ", ".join(f"{width} x {height} pixels" for height, width in meta.image_size)
    return {
        "model": f"{meta.model} ({meta.family})",
        "layers": f"{meta.layers} of {meta.kv_heads} KV heads, {meta.query_groups} query heads each",
        "image": images or "none",
        "prompt": meta.prompt,
    }


def _history(trace: Trace) -> dict[str, str]:
    meta = trace.meta
    rows = {"versions": ", ".join(f"{name} {value}" for name, value in meta.versions.items())}
    if meta.edits:
        rows["edits"] = "; ".join(json.dumps(edit) for edit in meta.edits)
    if meta.notes:
        rows["notes"] = " ".join(meta.notes)
    return rows
