"""Settings that a person begins with, and the order in which a form shows them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rcr_core.errors import SettingsError
from rcr_core.settings import Settings

_PAPER = {"select": 32, "window": 32, "tau0": 0.03, "rho": 0.4, "gain": 0.05}
PAPER, BUNDLED = "Paper: 32 entries, rate .4", "Bundled model: 64 entries, rate .6"
PRESETS: dict[str, dict[str, float]] = {
    PAPER: _PAPER,
    BUNDLED: {**_PAPER, "select": 64, "rho": 0.6},
    "Eager: 64 entries, rate .8": {**_PAPER, "select": 64, "rho": 0.8},
    "Lazy: 64 entries, rate .1": {**_PAPER, "select": 64, "rho": 0.1},
}
MAIN_SETTINGS = ("select", "window", "tau0", "rho", "gain")


def setting_names() -> list[str]:
    """Every setting, the main ones first."""
    return [*MAIN_SETTINGS, *(spec.name for spec in fields(Settings) if spec.name not in MAIN_SETTINGS)]


def default_values(preset: str) -> list[Any]:
    """The values of a form that was reset: the defaults under a preset."""
    values = Settings().to_dict() | PRESETS[preset]
    return [values[name] for name in setting_names()]


def settings_from(values: dict[str, Any]) -> Settings:
    """Settings from a form or a script, where whole numbers may come as 32.0. Raises `SettingsError`."""
    if not isinstance(values, dict):
        raise SettingsError(f"settings must be an object of names and values, got {type(values).__name__}")
    defaults = Settings().to_dict()
    return Settings.from_dict({name: _as_whole(defaults.get(name), value) for name, value in values.items()})


def _as_whole(default: Any, value: Any) -> Any:
    whole = type(default) is int and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value


def whole_number(name: str, value: Any) -> int:
    """A whole number from a form or a script. Raises `SettingsError`."""
    whole = isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
    if not whole:
        raise SettingsError(f"{name} must be a whole number, got {value!r}")
    return int(value)
