"""How each policy looks, the same in every figure: the hue says when it selects, and RCR and BACON stand out.

Hues of one kind: blue re-selects on drift, orange selects once at prefill, green and purple select in every
step. Every colour has a contrast of 3:1 or more on a light and on a dark ground.
"""

from __future__ import annotations

from dataclasses import dataclass

from viz.palette import BLUE, REFERENCE, VERMILLION


@dataclass(frozen=True)
class Look:
    """Colour, mark and dash of a policy; `loud` where it stands out."""

    colour: str
    symbol: str
    dash: str = "solid"
    loud: bool = False

    @property
    def size(self) -> int:
        """Diameter of a mark in pixels."""
        return 11 if self.loud else 8

    @property
    def width(self) -> float:
        """Width of a curve in pixels."""
        return 2.5 if self.loud else 1.5

    @property
    def marker(self) -> dict:
        return {"color": self.colour, "symbol": self.symbol, "size": self.size}

    @property
    def line(self) -> dict:
        return {"color": self.colour, "dash": self.dash, "width": self.width}

    def error(self, low: list[float | None], high: list[float | None]) -> dict:
        """Error bars of these lengths below and above the mean."""
        return {
            "type": "data",
            "symmetric": False,
            "array": high,
            "arrayminus": low,
            "color": self.colour,
            "thickness": 2 if self.loud else 1.2,
            "width": 0,
        }


LOOKS = {
    "full": Look(REFERENCE, "line-ns", "dot"),
    "bacon": Look(VERMILLION, "circle", loud=True),
    "snapkv": Look("#a8765a", "circle", "dash"),
    "oracle": Look("#9a8347", "circle", "dot"),
    "rcr": Look(BLUE, "diamond", loud=True),
    "threshold": Look("#5f8fb5", "diamond", "dash"),
    "exact": Look("#4f9579", "square"),
    "infinigen": Look("#9a7ca6", "square"),
    "quest": Look("#7b8f52", "square", "dash"),
    "arkvale": Look("#a5748a", "square", "dot"),
}
_UNKNOWN = Look("#858585", "cross", "dashdot")


def look_of(policy: str) -> Look:
    return LOOKS.get(policy, _UNKNOWN)
