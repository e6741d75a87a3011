"""The colours of lines can be seen on a light and on a dark ground."""

from __future__ import annotations

import pytest

from viz.palette import BLUE, GREEN, LABEL, PURPLE, REFERENCE, VERMILLION

LIGHT, DARK, WHITE = "#ffffff", "#14181d", "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ground", [LIGHT, DARK])
@pytest.mark.parametrize("colour", [BLUE, VERMILLION, GREEN, PURPLE, REFERENCE])
def test_lines_stand_out(colour, ground):
    assert contrast(colour, ground) >= 3


def test_hover_labels_can_be_read():
    assert contrast(LABEL, WHITE) >= 4.5
