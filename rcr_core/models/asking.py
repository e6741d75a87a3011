"""How a command line asks where a model is to go."""

from __future__ import annotations

import argparse
from typing import Any

from rcr_core.models.placement import DEVICE_MAPS, DEVICES, DTYPES, QUANTIZED, Placement


def add_placement(group: Any) -> None:
    """Where a model goes, for a parser or a group of one."""
    group.add_argument("--device", default="auto", help=f"{DEVICES} (default: auto)")
    group.add_argument(
        "--dtype", default="auto", help=f"auto, {', '.join(DTYPES)} (default: auto, float32 on the CPU)"
    )
    group.add_argument(
        "--device-map",
        choices=DEVICE_MAPS,
        default="none",
        help="auto: spread the layers over all GPUs and CPU memory (needs accelerate)",
    )
    group.add_argument(
        "--quantize",
        choices=QUANTIZED,
        default="none",
        help="weights in 4bit or 8bit (needs accelerate and bitsandbytes)",
    )


def placement_of(options: argparse.Namespace) -> Placement:
    """What was asked for."""
    return Placement(options.device, options.dtype, options.device_map, options.quantize)
