"""A figure as a notebook prints it, and the values that it may stand for."""

import re
from dataclasses import dataclass
from math import isfinite

ABOUT = 1.5  # "about 100 times" is right up to this factor
MOST_DIGITS = 40
NUMBER = re.compile(r"([-+]?)(\d+)(?:\.(\d+))?(?:e([-+]?\d{1,3}))?")


@dataclass(frozen=True, slots=True)
class Interval:
    """The values that a printed number may stand for, or that a measurement leaves open."""

    low: float
    high: float

    def meets(self, other: "Interval") -> bool:
        """Return whether some value is in both."""
        slack = 1e-14 * max(abs(low) for low in (self.low, other.low, 0.0) if isfinite(low))  # of binary fractions
        return self.low <= other.high + slack and other.low <= self.high + slack


def interval_of(text: str) -> Interval | None:
    """Return what a figure may stand for; None for words.

    A whole number stands for itself; one with decimals or an exponent for all that are rounded to it, ``>1`` for all
    above 1, ``<1`` for all below, ``about 9`` for all up to 1.5 times as large or small.
    """
    if text.startswith(">") and (bound := interval_of(text[1:])):
        return Interval(bound.high, float("inf"))
    if text.startswith("<") and (bound := interval_of(text[1:])):
        return Interval(float("-inf"), bound.low)
    if text.startswith("about ") and (near := interval_of(text.removeprefix("about "))):
        return Interval(near.low / ABOUT, near.high * ABOUT)
    found = NUMBER.fullmatch(text) if len(text) <= MOST_DIGITS else None
    if found is None:
        return None
    value, decimals, exponent = float(text), found[3] or "", found[4]
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(decimals)) if decimals or exponent else 0.0
    return Interval(value - half, value + half)
