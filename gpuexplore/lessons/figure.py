"""A number with its interval, its unit and what is known of its measurement; arithmetic carries all of it along."""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple

from gpuexplore.errors import InvalidInput
from gpuexplore.units import (
    format_bytes_per_s,
    format_flop_per_s,
    format_intensity,
    format_percent,
    format_seconds,
    format_si,
    round_significant,
)

LARGEST = 1e30
LARGEST_POWER = 8
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
Style = Literal["number", "percent"]


class Undefined(InvalidInput):
    """Arithmetic that has no result for these values, e.g. a division by what may be zero."""


class Dimension(NamedTuple):
    """Powers of the units a quantity is made of; all zero for a plain number."""

    seconds: int = 0
    flop: int = 0
    bytes: int = 0

    def times(self, other: "Dimension", power: int = 1) -> "Dimension":
        """Return the dimension of a product, or with `power` -1 of a quotient."""
        return Dimension(*(mine + power * theirs for mine, theirs in zip(self, other, strict=True)))


PLAIN, TIME, WORK, SIZE = Dimension(), Dimension(seconds=1), Dimension(flop=1), Dimension(bytes=1)
RATE, BANDWIDTH = WORK.times(TIME, -1), SIZE.times(TIME, -1)
INTENSITY = WORK.times(SIZE, -1)


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity.

    Attributes:
        value: in SI base units, FLOP and bytes.
        low, high: its 95 % interval; the value itself where it is exact.
        dimension: its unit.
        style: whether a reader wants it as a percentage.
        sources: where it comes from, e.g. `measured here`; none for what follows by arithmetic alone.
        doubts: flags of the results it comes from, which say that they are not to be relied on.
    """

    value: float
    low: float
    high: float
    dimension: Dimension = PLAIN
    style: Style = "number"
    sources: frozenset[str] = frozenset()
    doubts: frozenset[str] = frozenset()

    @property
    def is_exact(self) -> bool:
        """Whether no interval belongs to it."""
        return self.low == self.high


def exact(value: float, dimension: Dimension = PLAIN, style: Style = "number") -> Figure:
    """Return a figure without an interval."""
    return Figure(value, value, value, dimension, style)


def combined(sign: str, left: Figure, right: Figure) -> Figure:
    """Return `left` + - * or / `right`; the interval holds every combination of the two.

    Raises:
        InvalidInput: the units do not go together.
        Undefined: it is divided by what may be zero, or the result is too large.
    """
    if sign in "+-" and left.dimension != right.dimension:
        raise InvalidInput(f"{format_figure(left)} {sign} {format_figure(right)}: the units differ")
    if sign == "/" and right.low <= 0 <= right.high:
        raise Undefined(f"{format_figure(left)} / {format_figure(right)}: divides by what may be zero")
    ends = [SIGNS[sign](a, b) for a, b in product((left.low, left.high), (right.low, right.high))]
    power = {"*": 1, "/": -1}.get(sign)
    dimension = left.dimension if power is None else left.dimension.times(right.dimension, power)
    style: Style = left.style if power is None or right.dimension == PLAIN else "number"
    if power is not None and left.dimension == right.dimension:
        style = "number"
    return _bounded(
        _joined(Figure(SIGNS[sign](left.value, right.value), min(ends), max(ends), dimension, style), left, right)
    )


def raised(base: Figure, power: Figure) -> Figure:
    """Return `base` ** `power`.

    Raises:
        InvalidInput: the power is too large, no whole number where there is a unit, or has an interval or a unit.
        Undefined: there is no such power of these values, or it is too large.
    """
    small = power.is_exact and power.dimension == PLAIN and abs(power.value) <= LARGEST_POWER
    if not small or (base.dimension != PLAIN and power.value != int(power.value)):
        raise InvalidInput.of("power", format_figure(power), f"numbers from -{LARGEST_POWER} to {LARGEST_POWER}")
    if base.low <= 0 and (power.value < 0 or power.value != int(power.value)):
        raise Undefined(f"{format_with_interval(base)}: such a power is of numbers above 0")
    try:
        value, low, high = (end**power.value for end in (base.value, base.low, base.high))
    except OverflowError as error:
        raise _too_large() from error
    ends = [low, high, *([0.0] if base.low <= 0 <= base.high else [])]
    dimension = Dimension(*(int(part * power.value) for part in base.dimension))
    return _bounded(_joined(Figure(value, min(ends), max(ends), dimension), base))


def mapped(function: Callable[[float], float], figure: Figure, *, keeps_unit: bool = True) -> Figure:
    """Return a rising or falling `function` of a figure, e.g. `math.ceil`.

    Args:
        keeps_unit: whether what it gives has the figure's unit; where not, the figure must have none.

    Raises:
        InvalidInput: the figure has a unit, which the function does not keep.
        Undefined: the function has no value somewhere in the interval, e.g. the logarithm of 0.
    """
    if not keeps_unit and figure.dimension != PLAIN:
        raise InvalidInput.of(f"argument of {function.__name__}", format_figure(figure), "numbers without a unit")
    try:
        ends = (function(figure.low), function(figure.high))
    except ValueError as error:
        raise Undefined(f"{function.__name__} of {format_with_interval(figure)}: has no value") from error
    return replace(figure, value=function(figure.value), low=min(ends), high=max(ends))


def is_less(left: Figure, right: Figure) -> bool | None:
    """Return whether `left` < `right`; None where the intervals overlap.

    Raises:
        InvalidInput: the units differ.
    """
    if left.dimension != right.dimension:
        raise InvalidInput(f"{format_figure(left)} < {format_figure(right)}: the units differ")
    if left.high < right.low:
        return True
    return False if left.low >= right.high else None


def _joined(made: Figure, *of: Figure) -> Figure:
    sources = frozenset().union(*(figure.sources for figure in of))
    return replace(made, sources=sources, doubts=frozenset().union(*(figure.doubts for figure in of)))


def _bounded(figure: Figure) -> Figure:
    if not all(math.isfinite(end) and abs(end) <= LARGEST for end in (figure.low, figure.value, figure.high)):
        raise _too_large()
    return figure


def _too_large() -> Undefined:
    return Undefined(f"the result is beyond {LARGEST:g}")


FORMATS: Mapping[Dimension, Callable[[float], str]] = {
    TIME: format_seconds,
    RATE: format_flop_per_s,
    BANDWIDTH: format_bytes_per_s,
    SIZE: lambda value: format_si(value, "B"),
    WORK: lambda value: _plain(value) + " FLOP",
    INTENSITY: format_intensity,
}


def format_figure(figure: Figure) -> str:
    """Return the value with its unit, e.g. ``1.25 ms``."""
    return formatter(figure)(figure.value)


def format_with_interval(figure: Figure) -> str:
    """Return the value with its unit and its interval, e.g. ``1.25 ms (1.22 ms to 1.29 ms)``."""
    if figure.is_exact:
        return format_figure(figure)
    say = formatter(figure)
    return f"{say(figure.value)} ({say(figure.low)} to {say(figure.high)})"


def formatter(figure: Figure) -> Callable[[float], str]:
    """Return what says values of this unit."""
    if figure.dimension == PLAIN:
        return format_percent if figure.style == "percent" else _plain
    return FORMATS.get(figure.dimension, _plain)


def _plain(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    if not 1e-3 <= abs(value) < 1e6:
        digits, exponent = f"{value:.2e}".split("e")
        return f"{digits}e{int(exponent)}"
    rounded = round_significant(value)
    if math.isclose(rounded, value, rel_tol=1e-9):
        return f"{rounded:,.10g}"
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"
