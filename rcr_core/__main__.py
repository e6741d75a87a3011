"""Command line of the core: `python -m rcr_core caption|study|report|info|bench`."""

from __future__ import annotations

import argparse
import sys

from rcr_core.console import bench, caption, info, report, study
from rcr_core.errors import ScopeError


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all others are."""

    def error(self, message: str):
        self.exit(2, f"error: {message}. Hint: see {self.prog} --help.\n")


def main(argv: list[str] | None = None) -> int:
    """Run a command. Errors are one line with a hint, exit code 2."""
    parser = OneLineParser(
        prog="python -m rcr_core",
        description="Decode captions under a KV selection policy, and record everything that the policy did.",
        epilog="example: python -m rcr_core caption assets/examples/5-ten-objects.png --policy rcr",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (caption, study, report, info, bench):
        command.add_parser(commands)
    options = parser.parse_args(argv)
    options.words = sys.argv[1:] if argv is None else argv
    try:
        return options.run(options) or 0
    except ScopeError as error:
        hint = f" Hint: {error.hint}." if error.hint else ""
        print(f"error: {error.message}.{hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # commands that have something to keep see to it themselves
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
