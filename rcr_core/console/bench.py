"""`bench`: speed and memory of the policies on this machine."""

from __future__ import annotations

import argparse
import json

import torch

from rcr_core.bench import Contest, memory, prefill_seconds, random_contest, step_seconds
from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.console.arguments import count
from rcr_core.models import load_model, pick_device, prepare
from rcr_core.policies import POLICIES

# The oracle is left out: it decodes as any one-shot policy does.
POLICY_NAMES = tuple(name for name in POLICIES if name != "oracle")
CONTESTANTS = {
    "bundled": ("generate", *POLICY_NAMES, "rcr, traced"),
    "4k": ("generate", *POLICY_NAMES, "rcr, traced"),
    "16k": ("generate", "full", "bacon", "exact", "rcr", "rcr, traced"),
}
# (contest, numerator, denominator, target ratio)
TARGETS = (
    ("bundled", "rcr, traced", "generate", 1.25),
    ("4k", "rcr, traced", "generate", 0.85),
    ("16k", "rcr, traced", "generate", 0.4),
    ("4k", "bacon", "generate", 0.7),
    ("4k", "snapkv", "generate", 0.7),
    ("bundled", "rcr, traced", "rcr", 1.10),
    ("4k", "prefill with BACON and sketch", "plain prefill", 1.08),
)


def add_parser(commands) -> None:
    parser = commands.add_parser("bench", help="measure the policies against plain generate on this machine")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    parser.add_argument("--threads", type=count, help="CPU threads (default: torch's choice)")
    parser.add_argument("--rounds", type=count, default=8, help="turns of every contestant (default: 8)")
    parser.add_argument("--steps", type=count, default=24, help="decode steps a turn (default: 24)")
    parser.add_argument("--only", choices=tuple(CONTESTANTS), help="one contest instead of all three")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    pick_device(options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
    found = {}
    for name in [options.only] if options.only else CONTESTANTS:
        found[name] = _result(name, options)
        if not options.json:
            _print_result(found[name])
    ratios = _ratios(found)
    if options.json:
        print(json.dumps({"contests": found, "ratios": ratios, "threads": torch.get_num_threads()}))
        return
    print("ratios of medians")
    for row in ratios:
        print(f"  {row['contest']:9s}{row['what']:46s}{row['ratio']:6.2f}   target <= {row['target']}")


def _result(name: str, options: argparse.Namespace) -> dict:
    contest = _bundled(options.device) if name == "bundled" else _random(name, options.device)
    seconds = step_seconds(contest, CONTESTANTS[name], options.rounds, options.steps)
    prefill = prefill_seconds(contest, options.rounds) if name == "4k" else {}
    held = {policy: vars(memory(contest, policy)) for policy in CONTESTANTS[name] if policy in POLICIES}
    return {"title": contest.title, "step_seconds": seconds, "prefill_seconds": prefill, "memory": held}


def _random(name: str, device: str) -> Contest:
    return random_contest(1024 * int(name.removesuffix("k")), device)


def _bundled(device: str) -> Contest:
    loaded = load_model(MODEL_FOLDER, device=device)
    prepared = prepare(loaded, [make_scene(9008, count=14).image()], CAPTION_PROMPT)
    title = f"bundled captioner, prompt of {prepared.length} tokens"
    return Contest(title, loaded.model, loaded.tokenizer, prepared.inputs, prepared.geometry)


def _ratios(found: dict[str, dict]) -> list[dict]:
    rows = []
    for name, top, bottom, target in TARGETS:
        if name in found:
            seconds = {**found[name]["step_seconds"], **found[name]["prefill_seconds"]}
            ratio = seconds[top] / seconds[bottom]
            rows.append({"contest": name, "what": f"{top} / {bottom}", "ratio": ratio, "target": target})
    return rows


def _print_result(result: dict) -> None:
    base = result["step_seconds"]["generate"]
    print(result["title"])
    print(f"{'':18s}{'ms/step':>9s}{'ratio':>7s}{'resident':>13s}{'aside':>13s}{'peak':>13s}")
    for name, seconds in result["step_seconds"].items():
        line = f"  {name:16s}{1e3 * seconds:9.2f}{seconds / base:7.2f}"
        if held := result["memory"].get(name):
            line += "".join(f"{held[key] / 2**20:9.2f} MiB" for key in ("resident", "aside", "peak"))
        print(line)
    for name, seconds in result["prefill_seconds"].items():
        print(f"  {name}: {seconds:.2f} s")
    print(flush=True)
