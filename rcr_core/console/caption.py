"""`caption`: stream the caption of an image under a policy, and write the trace."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from rcr_core.bundled.examples import scene_in
from rcr_core.bundled.grading import Grade, grade
from rcr_core.bundled.scenes import CAPTION_PROMPT
from rcr_core.captioning import Captioner, CaptionRequest, CaptionRun
from rcr_core.console import arguments
from rcr_core.console.run_table import aligned, run_table
from rcr_core.errors import TraceError
from rcr_core.models import PromptLimits, load_model, open_image, prepare
from rcr_core.models.asking import placement_of
from rcr_core.outcome import run_numbers
from rcr_core.runs.truth import scene_facts
from rcr_core.trace import Trace, save_trace

PROMPT = "Describe this image in detail."


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "caption",
        help="stream the caption of an image, or of several, and write its trace",
        usage="python -m rcr_core caption IMAGE [IMAGE ...] [--policy NAME] [options]",
    )
    parser.add_argument(
        "images",
        nargs="+",
        metavar="IMAGE",
        help="PNG, JPEG, WebP, GIF or BMP; several stand in one prompt in this order, so do a video's frames",
    )
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help=f"what to ask (default: {PROMPT!r}; the bundled captioner has a longer one)",
    )
    arguments.add_policy(parser)
    parser.add_argument(
        "--max-new-tokens", type=int, default=320, metavar="N", help="at most this many tokens (default: 320)"
    )
    parser.add_argument(
        "--repetition-penalty",
        type=float,
        default=1.0,
        metavar="X",
        help="make tokens that were seen less likely (default: 1, none; a checkpoint's own is only reported)",
    )
    parser.add_argument(
        "--max-pixels",
        type=int,
        metavar="N",
        help="scale images of more pixels down first (default: as the model's processor does)",
    )
    parser.add_argument("--out", metavar="FILE", help="where the trace goes (default: runs/IMAGE.POLICY.rcr)")
    parser.add_argument(
        "--edit",
        action="append",
        default=[],
        metavar="EDIT",
        help="a what-if, such as refresh:40,layer=2 or tau:10,value=0.1; may be repeated",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object at the end, and nothing else"
    )
    arguments.add_model(parser)
    arguments.add_settings(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    # Everything that can be wrong is checked before the model is loaded.
    request = CaptionRequest(
        policy=options.policy,
        settings=arguments.settings_of(options),
        edits=tuple(arguments.parse_edit(text) for text in options.edit),
        max_new_tokens=options.max_new_tokens,
        repetition_penalty=options.repetition_penalty,
    )
    limits = PromptLimits(options.max_pixels)
    images = [open_image(path) for path in options.images]
    scene = scene_in(images[0]) if len(images) == 1 else None
    request = replace(request, scene=scene_facts(scene) if scene else None)
    out = _out_path(options)
    loaded = load_model(options.model, **vars(placement_of(options)))
    prompt = prepare(loaded, images, _prompt(options), options.max_new_tokens, limits)
    caption = Captioner(loaded).run(prompt, request)
    _stream(caption, quiet=options.json)
    trace = caption.trace()
    out.parent.mkdir(exist_ok=True)
    save_trace(trace, out)
    # Another prompt may ask for something else than a description, so there is nothing to grade.
    graded = grade(scene, trace.text) if scene and options.prompt is None else None
    if options.json:
        print(json.dumps(_machine_report(trace, graded, out)))
    else:
        _print_report(trace, graded, out)


def _prompt(options: argparse.Namespace) -> str:
    if options.prompt is not None:
        return options.prompt
    return CAPTION_PROMPT if Path(options.model).resolve() == arguments.MODEL_FOLDER else PROMPT


def _machine_report(trace: Trace, graded: Grade | None, out: Path) -> dict[str, object]:
    scores = {} if graded is None else {"objects": graded.total, "objects_right": graded.right}
    return {
        **run_numbers(trace),
        "tokens_per_second": _speed(trace),
        **scores,
        "text": trace.text,
        "notes": list(trace.meta.notes),
        "trace": str(out),
    }


def _print_report(trace: Trace, graded: Grade | None, out: Path) -> None:
    rows = run_table(trace) | {
        "speed": f"{_speed(trace):.1f} tokens/s after the prefill, every step recorded"
    }
    if graded is not None:
        rows["objects right"] = f"{graded.right} of {graded.total} in all four attributes"
    rows["trace"] = str(out)
    print(aligned(rows))
    for note in trace.meta.notes:
        print(f"note: {note}")


def _speed(trace: Trace) -> float:
    """Tokens per second of decoding; 0 where no step was decoded."""
    seconds = sum(trace.meta.timings["steps"])
    return (trace.steps - 1) / seconds if seconds else 0.0


def _stream(run: CaptionRun, quiet: bool) -> None:
    """Print the text as it comes. An interrupt, or a reader that is gone, keeps what was recorded."""
    records = iter(run)
    try:
        for record in records:
            if not quiet and record.text:
                print(record.text, end="", flush=True)
        if not quiet:
            print("\n", flush=True)
    except KeyboardInterrupt:
        records.close()
        print("\n")
    except BrokenPipeError:
        records.close()
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it stays open to the end


def _out_path(options: argparse.Namespace) -> Path:
    """Where the trace goes; raises `TraceError` where nothing can be written there."""
    out = Path(options.out or Path("runs") / f"{Path(options.images[0]).stem}.{options.policy}.rcr")
    if not options.out and not out.parent.exists() and os.access(".", os.W_OK):
        return out  # the folder is made when there is something to put into it
    if out.is_dir():
        raise TraceError(f"{out} is a folder", "give --out the name of a file")
    if not out.parent.is_dir():
        raise TraceError(f"there is no folder {out.parent}", "make it first, or give another --out")
    if not os.access(out.parent, os.W_OK):
        raise TraceError(f"nothing can be written to {out.parent}", "give another --out")
    return out
