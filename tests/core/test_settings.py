"""Settings refuse what is out of range, and say which field and which range."""

from dataclasses import fields

import numpy as np
import pytest

from rcr_core.errors import SettingsError
from rcr_core.settings import Settings

WHOLE = {  # field -> smallest and largest
    "select": (1, 65536),
    "window": (1, 65536),
    "rank": (1, 1024),
    "candidates": (0, 1048576),
    "skip_layers": (0, 1024),
    "page": (1, 4096),
    "channels": (1, 1024),
}
REAL = {"tau0": (1e-6, 1.0), "rho": (0.0, 1.0), "gain": (0.0, 10.0)}
CHOICES = {
    "update": ("layer", "step"),
    "gqa": ("mean", "max"),
    "bacon": ("paper", "release"),
    "page_heads": ("layer", "head"),
    "merge": ("masked", "branch"),
    "offload": ("none", "masked", "conditional"),
}
FLAGS = ("centre", "defer", "diagnostics")
PAIRED = {"candidates": {"select": 1}}  # other fields that an edge needs


def test_the_defaults_are_the_papers():
    settings = Settings()
    assert (settings.select, settings.window, settings.rank, settings.candidate_count) == (32, 32, 8, 128)
    assert (settings.tau0, settings.rho, settings.gain, settings.update) == (0.03, 0.4, 0.05, "layer")
    assert (settings.gqa, settings.bacon, settings.page, settings.channels) == ("mean", "paper", 16, 32)
    assert (settings.page_heads, settings.merge, settings.skip_layers) == ("layer", "masked", 0)
    assert settings.offload == "none"
    assert not (settings.centre or settings.defer or settings.diagnostics)


def test_every_field_is_tested_here():
    assert {spec.name for spec in fields(Settings)} == {*WHOLE, *REAL, *CHOICES, *FLAGS}


@pytest.mark.parametrize("name, limits", [*WHOLE.items(), *REAL.items()])
def test_the_ends_of_a_range_are_allowed(name, limits):
    for value in limits:
        assert getattr(Settings(**{**PAIRED.get(name, {}), name: value}), name) == value


@pytest.mark.parametrize("name, limits", WHOLE.items())
def test_a_whole_number_beyond_its_range_is_refused_by_name_and_range(name, limits):
    for value in (limits[0] - 1, limits[1] + 1, limits[0] + 0.5, "3", None, True, float("nan")):
        with pytest.raises(SettingsError) as caught:
            Settings(**{name: value})
        assert caught.value.message.startswith(f"{name} must be a whole number in [{limits[0]}, {limits[1]}]")


@pytest.mark.parametrize("name, limits", REAL.items())
def test_a_number_beyond_its_range_is_refused_by_name_and_range(name, limits):
    for value in (limits[0] - 1e-9, limits[1] + 1e-9, float("nan"), float("inf"), "0.5", None, False):
        with pytest.raises(SettingsError) as caught:
            Settings(**{name: value})
        assert caught.value.message.startswith(f"{name} must be a number in [{limits[0]:g}, {limits[1]:g}]")


@pytest.mark.parametrize("name, options", CHOICES.items())
def test_a_choice_takes_its_options_and_names_them(name, options):
    for value in options:
        assert getattr(Settings(**{name: value}), name) == value
    for value in ("other", "", None, 0, options):
        with pytest.raises(SettingsError) as caught:
            Settings(**{name: value})
        assert caught.value.message.startswith(f"{name} must be one of {', '.join(options)}")


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_true_or_false(name):
    assert getattr(Settings(**{name: True}), name) is True
    for value in (1, 0, "yes", None):
        with pytest.raises(SettingsError, match=f"{name} must be true or false"):
            Settings(**{name: value})


def test_numpy_numbers_are_numbers():
    assert Settings(select=np.int64(4), rho=np.float32(0.5)).select == 4


def test_candidates_are_four_times_the_selection_unless_given():
    assert Settings(select=5).candidate_count == 20
    assert Settings(select=5, candidates=7).candidate_count == 7
    assert Settings(select=5, candidates=5).candidate_count == 5


def test_fewer_candidates_than_the_selection_are_refused():
    with pytest.raises(SettingsError, match=r"candidates must be 0 or at least select \(5\), got 4"):
        Settings(select=5, candidates=4)


def test_a_dictionary_gives_the_settings_back():
    settings = Settings(select=5, tau0=0.1, gqa="max", centre=True)
    assert Settings.from_dict(settings.to_dict()) == settings
    assert Settings.from_dict({}) == Settings()


def test_an_unknown_field_is_refused_by_name():
    with pytest.raises(SettingsError, match="unknown setting 'budget'") as caught:
        Settings.from_dict({"select": 5, "budget": 64})
    assert "candidates" in caught.value.hint and "window" in caught.value.hint


def test_a_dictionary_is_held_to_the_same_ranges():
    with pytest.raises(SettingsError, match="rho must be"):
        Settings.from_dict({"rho": 2})


@pytest.mark.parametrize(
    "offload, merge, branches",
    [
        ("none", "masked", False),
        ("none", "branch", True),
        ("masked", "branch", False),
        ("conditional", "masked", True),
    ],
)
def test_an_offloaded_prefix_decides_how_a_refresh_is_merged(offload, merge, branches):
    assert Settings(offload=offload, merge=merge).branches is branches
