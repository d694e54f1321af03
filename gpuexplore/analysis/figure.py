"""A number with its interval, its unit and what is known of its measurement; arithmetic carries all of it along."""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, NamedTuple

from gpuexplore.analysis.verdict import Estimate, compare, quotient, ratio_of
from gpuexplore.core import (
    InvalidInput,
    Result,
    format_bytes_per_s,
    format_flop_per_s,
    format_intensity,
    format_percent,
    format_seconds,
    format_si,
    round_significant,
)

LARGEST = 1e30
WRONG = frozenset({"over_peak", "over_physical_peak", "one_sample"})  # unusable; other flags widen intervals
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


PLAIN = Dimension()
TIME = Dimension(seconds=1)
WORK = Dimension(flop=1)
SIZE = Dimension(bytes=1)
RATE = WORK.times(TIME, -1)
BANDWIDTH = SIZE.times(TIME, -1)
INTENSITY = WORK.times(SIZE, -1)


@dataclass(frozen=True, slots=True)
class Clocked:
    """The measured time behind a figure, or its reciprocal, up to an exactly known factor.

    Attributes:
        power: 1 of a time, -1 of a rate.
        run: results of one run, and of one group in it, were sampled in the same rounds.
    """

    result: Result
    power: int
    run: str


@dataclass(frozen=True, slots=True)
class LessonFigure:
    """A quantity.

    Attributes:
        value: in SI base units, FLOP and bytes.
        low, high: its 95 % interval; the value itself where it is exact.
        dimension: its unit.
        style: whether a reader wants it as a percentage.
        sources: where it comes from, e.g. `measured here`; none for what follows by arithmetic alone.
        doubts: flags of the results it comes from, which say that they are not to be relied on.
        clocked: the one time it comes from; None where there is none, or several.
    """

    value: float
    low: float
    high: float
    dimension: Dimension = PLAIN
    style: Style = "number"
    sources: frozenset[str] = frozenset()
    doubts: frozenset[str] = frozenset()
    clocked: Clocked | None = field(default=None, compare=False)

    @property
    def is_exact(self) -> bool:
        """True without an interval."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class QuantityRow:
    """Quantities that belong together, e.g. of one result.

    Attributes:
        labels: what they are of, by selector.
        figures: by the name of the quantity.
        missing: why it has no others, where something could not be measured.
    """

    labels: Mapping[str, str]
    figures: Mapping[str, LessonFigure | str]
    missing: str = ""


def exact(value: float, dimension: Dimension = PLAIN, style: Style = "number") -> LessonFigure:
    """Return a figure without an interval."""
    return LessonFigure(value, value, value, dimension, style)


def combined(sign: str, left: LessonFigure, right: LessonFigure) -> LessonFigure:
    """Return `left` + - * or / `right`; the interval covers every combination of the two.

    That of the ratio of two measured times is narrower: they are independent, or were sampled in the same rounds.

    Raises:
        InvalidInput: the units do not go together.
        Undefined: it is divided by what may be zero, or the result is too large.
    """
    if sign in "+-" and left.dimension != right.dimension:
        raise InvalidInput(f"{format_figure(left)} {sign} {format_figure(right)}: the units differ")
    if sign == "/" and right.low <= 0 <= right.high:
        raise Undefined(f"{format_figure(left)} / {format_figure(right)}: the divisor may be zero")
    signs = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    ends = [signs[sign](a, b) for a, b in product((left.low, left.high), (right.low, right.high))]
    power = {"*": 1, "/": -1}.get(sign)
    dimension = left.dimension if power is None else left.dimension.times(right.dimension, power)
    style: Style = left.style if power is None or right.dimension == PLAIN else "number"
    if power is not None and left.dimension == right.dimension:
        style = "number"
    found = LessonFigure(signs[sign](left.value, right.value), min(ends), max(ends), dimension, style)
    ratio = _ratio(left, right) if sign == "/" else None
    if ratio and ratio.interval:
        low, high = (found.value * end / ratio.value for end in ratio.interval)
        found = replace(found, low=low, high=high)
    return _bounded(_joined(replace(found, clocked=_one_time(sign, left, right)), left, right))


def _ratio(left: LessonFigure, right: LessonFigure) -> Estimate | None:
    """Return the ratio of the times that two figures are, one way up; None where they are not."""
    this = left.clocked
    other = right.clocked
    if not this or not other or this.power != other.power:
        return None
    same_run = this.run == other.run
    if this.power < 0:
        return ratio_of(other.result, this.result, same_run=same_run)
    return ratio_of(this.result, other.result, same_run=same_run)


def _one_time(sign: str, left: LessonFigure, right: LessonFigure) -> Clocked | None:
    """Return the time that a product or quotient with an exact positive number still is."""
    if sign in "*/" and right.is_exact and right.value > 0:
        return left.clocked
    if sign in "*/" and left.is_exact and left.value > 0 and right.clocked:
        return right.clocked if sign == "*" else replace(right.clocked, power=-right.clocked.power)
    return None


def raised(base: LessonFigure, power: LessonFigure) -> LessonFigure:
    """Return `base` ** `power`.

    Raises:
        InvalidInput: the power is too large, no whole number where there is a unit, or has an interval or a unit.
        Undefined: there is no such power of these values, or it is too large.
    """
    largest = 8
    small = power.is_exact and power.dimension == PLAIN and abs(power.value) <= largest
    if not small or (base.dimension != PLAIN and power.value != int(power.value)):
        raise InvalidInput.of("power", format_figure(power), f"numbers from -{largest} to {largest}")
    if base.low <= 0 and (power.value < 0 or power.value != int(power.value)):
        raise Undefined(f"{format_with_interval(base)}: this power is defined only for numbers above 0")
    try:
        value, low, high = (end**power.value for end in (base.value, base.low, base.high))
    except OverflowError as error:
        raise _too_large() from error
    ends = [low, high, *([0.0] if base.low <= 0 <= base.high else [])]
    dimension = Dimension(*(int(part * power.value) for part in base.dimension))
    return _bounded(_joined(LessonFigure(value, min(ends), max(ends), dimension), base))


def mapped(function: Callable[[float], float], figure: LessonFigure, *, keeps_unit: bool = True) -> LessonFigure:
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
        raise Undefined(f"{function.__name__} of {format_with_interval(figure)} is undefined") from error
    return replace(figure, value=function(figure.value), low=min(ends), high=max(ends))


def is_less(left: LessonFigure, right: LessonFigure) -> bool | None:
    """Return whether `left` < `right`; None where the intervals overlap.

    Raises:
        InvalidInput: the units differ.
    """
    if left.dimension != right.dimension:
        raise InvalidInput(f"{format_figure(left)} < {format_figure(right)}: the units differ")
    if min(left.low, right.low) > 0:
        relation = compare(_quotient(left, right), 1.0).relation
        return None if relation is None else relation == "below"
    if left.high < right.low or left.low > right.high:
        return left.high < right.low
    return None


def _quotient(left: LessonFigure, right: LessonFigure) -> Estimate:
    """Return the ratio of two positive figures; without a common clock they are independent."""
    if left.clocked and right.clocked:
        ratio = combined("/", left, right)
        return Estimate(ratio.value, ratio.low, ratio.high, "times", "")
    this, other = (Estimate(figure.value, figure.low, figure.high, "", "") for figure in (left, right))
    found = quotient(this, other)
    assert found is not None
    return found


def _joined(made: LessonFigure, *of: LessonFigure) -> LessonFigure:
    sources = frozenset().union(*(figure.sources for figure in of))
    return replace(made, sources=sources, doubts=frozenset().union(*(figure.doubts for figure in of)))


def _bounded(figure: LessonFigure) -> LessonFigure:
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


def format_figure(figure: LessonFigure) -> str:
    """Return the value with its unit, e.g. ``1.25 ms``."""
    return _formatter(figure)(figure.value)


def format_with_interval(figure: LessonFigure) -> str:
    """Return the value with its unit and its interval, e.g. ``1.25 ms (1.22 ms to 1.29 ms)``."""
    if figure.is_exact:
        return format_figure(figure)
    say = _formatter(figure)
    return f"{say(figure.value)} ({say(figure.low)} to {say(figure.high)})"


def _formatter(figure: LessonFigure) -> Callable[[float], str]:
    """Return the formatter of values of this unit."""
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
