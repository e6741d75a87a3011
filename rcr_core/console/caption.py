"""`caption`: stream the caption of an image under a policy, and write the trace."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rcr_core.bundled.examples import scene_of
from rcr_core.bundled.grading import Grade, grade
from rcr_core.bundled.scenes import CAPTION_PROMPT
from rcr_core.captioning import Captioner, CaptionRequest, CaptionRun
from rcr_core.console import arguments
from rcr_core.console.report import aligned, run_numbers, run_table
from rcr_core.errors import TraceError
from rcr_core.models import load_model, open_image, prepare
from rcr_core.trace import Trace, save_trace

PROMPT = "Describe this image in detail."


def add_parser(commands) -> None:
    parser = commands.add_parser("caption", help="stream the caption of an image and write its trace")
    parser.add_argument("image", help="PNG, JPEG, WebP, GIF or BMP")
    parser.add_argument(
        "--prompt", help=f"what to ask (default: {PROMPT!r}; the bundled captioner has a longer one)"
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
    image = open_image(options.image)
    out = _out_path(options)
    bundled = Path(options.model) == arguments.MODEL_FOLDER
    loaded = load_model(options.model, device=options.device, dtype=options.dtype)
    prompt_text = options.prompt or (CAPTION_PROMPT if bundled else PROMPT)
    prompt = prepare(loaded, [image], prompt_text, options.max_new_tokens)
    caption = Captioner(loaded).run(prompt, request)
    seconds = _stream(caption, quiet=options.json)
    trace = caption.trace()
    if not options.out:
        out.parent.mkdir(exist_ok=True)
    save_trace(trace, out)
    rate = trace.steps / seconds if trace.steps else 0.0
    scene = scene_of(image)
    graded = grade(scene, trace.text) if scene is not None else None
    if options.json:
        print(json.dumps(_machine_report(trace, rate, graded, out)))
    else:
        _print_report(trace, rate, graded, out)


def _machine_report(trace: Trace, rate: float, graded: Grade | None, out: Path) -> dict[str, object]:
    scores = {} if graded is None else {"objects": graded.total, "objects_right": graded.right}
    return {
        **run_numbers(trace),
        "tokens_per_second": rate,
        **scores,
        "text": trace.text,
        "notes": list(trace.meta.notes),
        "trace": str(out),
    }


def _print_report(trace: Trace, rate: float, graded: Grade | None, out: Path) -> None:
    rows = run_table(trace) | {"speed": f"{rate:.1f} tokens/s, with every step recorded"}
    if graded is not None:
        rows["objects right"] = f"{graded.right} of {graded.total} in all four attributes"
    rows["trace"] = str(out)
    print(aligned(rows))
    for note in trace.meta.notes:
        print(f"note: {note}")


def _stream(run: CaptionRun, quiet: bool) -> float:
    """Print the text as it comes, and return the seconds; an interrupt keeps what was recorded."""
    begun = time.perf_counter()
    records = iter(run)
    try:
        for record in records:
            if not quiet and record.text:
                print(record.text, end="", flush=True)
    except KeyboardInterrupt:
        records.close()
    if not quiet:
        print("\n")
    return time.perf_counter() - begun


def _out_path(options: argparse.Namespace) -> Path:
    if options.out:
        out = Path(options.out)
        if not out.parent.is_dir():
            raise TraceError(f"there is no folder {out.parent}", "make it first, or give another --out")
        return out
    return Path("runs") / f"{Path(options.image).stem}.{options.policy}.rcr"
