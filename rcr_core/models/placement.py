"""Where a model goes, and in which numbers: device, dtype, spread over devices, quantised weights."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from transformers import BitsAndBytesConfig

from rcr_core.errors import LoadError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICES = "auto, cpu, cuda, cuda:N or mps"
DEVICE_MAPS = ("none", "auto")
QUANTIZED = ("none", "4bit", "8bit")
# What each needs beyond the requirements.
_PACKAGES = {"device_map": ("accelerate",), "quantize": ("accelerate", "bitsandbytes")}


@dataclass(frozen=True)
class Placement:
    """What a person asks for; `resolved` says what that is on this machine.

    device: auto (CUDA or else MPS where there is one), cpu, cuda, cuda:N, mps. dtype: auto (float32 on the
    CPU, bfloat16 elsewhere), float32, bfloat16, float16. device_map: none, or auto: layer by layer over all
    GPUs, what does not fit in CPU memory. quantize: none, 4bit (NF4) or 8bit weights of the linear layers.
    """

    device: str = "auto"
    dtype: str = "auto"
    device_map: str = "none"
    quantize: str = "none"

    def resolved(self) -> Place:
        """Raises `LoadError` where this machine, or what is installed on it, cannot do it."""
        _check("device_map", self.device_map, DEVICE_MAPS)
        _check("quantize", self.quantize, QUANTIZED)
        if self.dtype != "auto":
            _check("dtype", self.dtype, ("auto", *DTYPES))
        device = pick_device(self.device)
        if self.device_map == "auto" and self.device != "auto":
            raise LoadError(
                f"device_map auto spreads a model over every device, and device {self.device} is one",
                "leave out one of the two",
            )
        if self.quantize != "none" and device.type == "mps":
            raise LoadError(f"weights in {self.quantize} need a CUDA GPU or the CPU", "leave out quantize")
        for option in ("device_map", "quantize"):
            if getattr(self, option) != "none":
                _check_packages(option, getattr(self, option))
        auto = torch.float32 if device.type == "cpu" else torch.bfloat16
        return Place(device, DTYPES.get(self.dtype, auto), self.device_map == "auto", self.quantize)


@dataclass(frozen=True)
class Place:
    """A placement on this machine; `spread` leaves the places of the layers to accelerate."""

    device: torch.device
    dtype: torch.dtype
    spread: bool
    quantize: str

    @property
    def options(self) -> dict[str, Any]:
        """What `from_pretrained` has to know; a model that it does not place has to be moved."""
        options: dict[str, Any] = {"dtype": self.dtype}
        if self.spread:
            options["device_map"] = "auto"
        elif self.quantize != "none":
            options["device_map"] = {"": str(self.device)}  # quantised weights are made where they stay
        if self.quantize == "4bit":
            options["quantization_config"] = BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=self.dtype
            )
        elif self.quantize == "8bit":
            options["quantization_config"] = BitsAndBytesConfig(load_in_8bit=True)
        return options


def pick_device(name: str) -> torch.device:
    """The device of a name: auto, cpu, cuda, cuda:N or mps. Raises `LoadError`."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise LoadError(f"unknown device {name!r}", f"use {DEVICES}")
    place = torch.device(name)
    if place.type == "cuda" and (place.index or 0) >= torch.cuda.device_count():
        raise _no_cuda(name)
    if place.type == "mps" and not torch.backends.mps.is_available():
        raise LoadError(f"this machine has no device {name}", "use auto or cpu")
    return place


def _no_cuda(name: str) -> LoadError:
    """Why there is none, as far as torch can tell: the number, torch itself, or the driver."""
    count = torch.cuda.device_count()
    if count:
        names = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        return LoadError(f"this machine has no device {name}", f"torch sees {names}")
    if torch.version.cuda is None:
        hint = "install a torch with CUDA (https://pytorch.org/get-started/locally), or use auto or cpu"
        return LoadError(f"there is no device {name}: this torch was built without CUDA", hint)
    hint = (
        f"if nvidia-smi shows a GPU, its driver is too old for CUDA {torch.version.cuda}; or use auto or cpu"
    )
    return LoadError(f"there is no device {name}: torch sees no GPU of NVIDIA", hint)


def _check(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise LoadError(f"unknown {name} {value!r}", f"use {', '.join(options)}")


def _check_packages(option: str, value: str) -> None:
    missing = [name for name in _PACKAGES[option] if find_spec(name) is None]
    if missing:
        raise LoadError(
            f"{option} {value} needs {' and '.join(missing)}, which the requirements leave out",
            f"pip install {' '.join(missing)}",
        )
