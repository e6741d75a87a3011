"""`bench`: speed and memory of the policies on this machine."""

from __future__ import annotations

import argparse
import json

import torch

from rcr_core.bench import (
    ALL,
    Contest,
    generate_steps,
    memory,
    policy_steps,
    prefill_seconds,
    random_contest,
    step_seconds,
)
from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.bundled.scenes import CAPTION_PROMPT, make_scene
from rcr_core.engine import Engine
from rcr_core.models import load_model, prepare
from rcr_core.settings import Settings

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
    parser = commands.add_parser("bench", help="measure every policy against plain generate on this machine")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: torch's choice)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, interleaved (default: 5)")
    parser.add_argument("--steps", type=int, default=48, help="decode steps a round (default: 48)")
    parser.add_argument("--only", choices=("bundled", "4k", "16k"), help="one contest instead of all three")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    if options.threads:
        torch.set_num_threads(options.threads)
    names = [options.only] if options.only else ["bundled", "4k", "16k"]
    found = {name: _contest(name, options) for name in names}
    ratios = [
        {
            "contest": name,
            "what": f"{top} / {bottom}",
            "ratio": found[name]["seconds"][top] / found[name]["seconds"][bottom],
            "target": target,
        }
        for name, top, bottom, target in TARGETS
        if name in found
    ]
    if options.json:
        print(json.dumps({"contests": found, "ratios": ratios, "threads": torch.get_num_threads()}))
        return
    for result in found.values():
        _print_contest(result)
    print("targets")
    for row in ratios:
        print(f"  {row['contest']:8s} {row['what']:46s} {row['ratio']:6.2f}   target <= {row['target']}")


def _contest(name: str, options: argparse.Namespace) -> dict:
    contest = (
        _bundled(options.device)
        if name == "bundled"
        else random_contest(1024 * int(name[:-1]), options.device)
    )
    settings = Settings()
    engine = Engine(contest.model)
    runs = {"generate": generate_steps(contest, options.steps)}
    for policy in ALL:
        runs[policy] = policy_steps(engine, contest, policy, settings, options.steps, traced=False)
    runs["rcr, traced"] = policy_steps(engine, contest, "rcr", settings, options.steps, traced=True)
    seconds = step_seconds(contest, runs, options.rounds)
    if name == "4k":
        prefill = prefill_seconds(engine, contest, settings, options.rounds)
        seconds |= {"plain prefill": prefill["plain"], "prefill with BACON and sketch": prefill["rcr"]}
    held = {policy: vars(memory(engine, contest, policy, settings)) for policy in ALL}
    return {"title": contest.title, "seconds": seconds, "memory": held}


def _bundled(device: str) -> Contest:
    loaded = load_model(MODEL_FOLDER, device=device)
    prepared = prepare(loaded, [make_scene(9008, count=14).image()], CAPTION_PROMPT)
    return Contest(
        f"bundled captioner, prompt {prepared.length}", loaded.model, prepared.inputs, prepared.geometry
    )


def _print_contest(result: dict) -> None:
    print(result["title"])
    base = result["seconds"]["generate"]
    print(f"  {'':32s}{'ms/step':>9s}{'ratio':>8s}{'resident':>12s}{'aside':>12s}{'peak':>12s}")
    for name, seconds in result["seconds"].items():
        line = f"  {name:32s}{1e3 * seconds:9.2f}"
        if "prefill" not in name:
            line += f"{seconds / base:8.2f}"
        if name in result["memory"]:
            held = result["memory"][name]
            line += "".join(f"{held[key] / 2**20:8.2f} MiB" for key in ("resident", "aside", "peak"))
        print(line)
    print()
