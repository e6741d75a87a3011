"""Flags that more than one command has; those of the settings come from the settings themselves."""

from __future__ import annotations

import argparse
from dataclasses import fields

from rcr_core.bundled.captioner import MODEL_FOLDER
from rcr_core.edits import KINDS, Edit, edits_from_dicts
from rcr_core.errors import EditError
from rcr_core.models.asking import add_placement
from rcr_core.policies import POLICIES
from rcr_core.settings import Settings, range_text


def add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        default=str(MODEL_FOLDER),
        metavar="ID_OR_PATH",
        help="a local folder or a hub id (default: the bundled captioner)",
    )
    add_placement(group)


def add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy", default="rcr", metavar="NAME", help="how entries are selected, see below (default: rcr)"
    )
    rows = "\n".join(f"  {policy.name:11s}{policy.summary}" for policy in POLICIES.values())
    parser.epilog = f"policies:\n{rows}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings (a policy reads the ones that it uses)")
    for spec in fields(Settings):
        flag = "--" + spec.name.replace("_", "-")
        meta = spec.metadata
        if "options" in meta:
            text = f"{meta['help']}: {' or '.join(meta['options'])} (default: {spec.default})"
            group.add_argument(flag, default=spec.default, metavar="NAME", help=text)
        elif "low" in meta:
            text = f"{meta['help']}, in {range_text(meta['low'], meta['high'])} (default: {spec.default:g})"
            kind, letter = (int, "N") if isinstance(spec.default, int) else (float, "X")
            group.add_argument(flag, type=kind, default=spec.default, metavar=letter, help=text)
        else:
            group.add_argument(
                flag, action=argparse.BooleanOptionalAction, default=spec.default, help=meta["help"]
            )


def settings_of(options: argparse.Namespace) -> Settings:
    """Raises `SettingsError`."""
    return Settings(**{spec.name: getattr(options, spec.name) for spec in fields(Settings)})


def count(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def parse_edit(text: str) -> Edit:
    """`KIND:STEP[,layer=L][,until=STEP][,index=I][,value=X]`. Raises `EditError`."""
    head, *rest = text.split(",")
    kind, _, step = head.partition(":")
    try:
        named = dict(item.split("=") for item in rest)
        numbers = {name: float(value) if name == "value" else int(value) for name, value in named.items()}
        values = {"kind": kind, "step": int(step), **numbers}
    except ValueError:
        usage = "KIND:STEP[,layer=L][,until=STEP][,index=I][,value=X]"
        raise EditError(
            f"cannot read the edit {text!r}", f"write {usage} with one of {', '.join(KINDS)}"
        ) from None
    return edits_from_dicts([values])[0]
