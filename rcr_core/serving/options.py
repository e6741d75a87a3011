"""What can be said on the command line of the page, and the server that it describes."""

from __future__ import annotations

import argparse
from pathlib import Path

from rcr_core.models.asking import add_placement, placement_of
from rcr_core.runs import RunStore
from rcr_core.serving.models import Models
from rcr_core.serving.studies import SHIPPED, Studies
from rcr_core.serving.workbench import MAX_PROMPT_TOKENS, Workbench

_LAST_PORT = 65535


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="app.py", description="Serve the page of RCR Scope.")
    options.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="ID_OR_PATH",
        help="folder or hub id (default: the bundled captioner); may be repeated, the page then has a picker",
    )
    add_placement(options)
    options.add_argument("--host", default="127.0.0.1", help="address to serve on (default: 127.0.0.1)")
    options.add_argument("--port", type=_port, default=7860, help="port to serve on (default: 7860)")
    options.add_argument("--auth", type=_login, metavar="USER:PASSWORD", help="ask for this login")
    options.add_argument(
        "--max-runs", type=_one_or_more, default=2, help="runs that decode at once (default: 2)"
    )
    options.add_argument(
        "--max-prompt-tokens",
        type=_one_or_more,
        default=MAX_PROMPT_TOKENS,
        metavar="N",
        help=f"refuse longer prompts, pictures included (default: {MAX_PROMPT_TOKENS})",
    )
    options.add_argument(
        "--study",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="show this study too, a results file or its folder, to all who see the page; may be repeated",
    )
    options.add_argument(
        "--mcp", action="store_true", help="serve the endpoints as MCP tools (needs gradio[mcp])"
    )
    return options


def studies_of(options: argparse.Namespace, store: RunStore) -> Studies:
    """The studies of a server, on its model. Raises `StudyError` where one that is to be shown is none."""
    models = Models(options.model, placement_of(options))
    workbench = Workbench(models, store, options.max_prompt_tokens)
    studies = Studies(workbench, shipped=SHIPPED)
    for path in options.study:
        studies.publish(path)
    return studies


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"a port is a whole number in [1, {_LAST_PORT}], got {text!r}")
    return int(text)


def _one_or_more(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"it must be a whole number, 1 or more, got {text!r}")
    return int(text)


def _login(text: str) -> tuple[str, str]:
    """The text is not repeated in an error: it is a secret."""
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        raise argparse.ArgumentTypeError("a login is USER:PASSWORD, neither of them empty")
    return user, password
