"""A value with its interval: the one form in which conclusions get their quantities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from types import MappingProxyType

from gpuexplore.errors import InvalidInput
from gpuexplore.units import (
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_interval,
    format_percent,
    format_ratio,
    format_seconds,
    format_si,
)

FORMATS: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "s": format_seconds,
        "times": format_ratio,
        "fraction": format_percent,
        "bytes": format_bytes,
        "bytes/s": format_bytes_per_s,
        "FLOP/s": format_flop_per_s,
        "relative error": lambda error: f"{error:.2g}".replace("e-0", "e-"),
    }
)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that a value is uncertain by.

    Attributes:
        name: ``samples``, ``processes``, or the flag that tells of it.
        deviation: half width of its 95 % interval, in natural logarithms.
    """

    name: str
    deviation: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """One value with its 95 % interval.

    Attributes:
        value: the best guess.
        low, high: the ends of the interval, which holds `value`; None is unknown, both or neither.
        unit: ``s``, ``times``, ``fraction``, ``FLOP/s``, ...
        basis: what it rests on, in words.
        doubts: what makes the interval wide, the widest part first; empty where that is not known.
    """

    value: float
    low: float | None
    high: float | None
    unit: str
    basis: str
    doubts: tuple[Doubt, ...] = ()

    def __post_init__(self) -> None:
        if not isfinite(self.value):
            raise InvalidInput.of("value", self.value, "finite numbers")
        if (self.low is None) != (self.high is None):
            raise InvalidInput.of("interval", (self.low, self.high), "two ends, or None and None")
        if self.low is not None and self.high is not None and not self.low <= self.value <= self.high:
            raise InvalidInput.of("interval", (self.low, self.high), f"ends around the value, {self.value}")

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends; None is unknown."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def widest_doubt(self) -> Doubt | None:
        """What makes the interval widest; None where that is not known."""
        return next(iter(self.doubts), None)

    @property
    def range(self) -> str:
        """The interval in words, e.g. ``1.9× to 2.4×``; one figure where both ends read alike."""
        if self.interval is None:
            return f"about {self.words(self.value)}"
        low, high = map(self.words, self.interval)
        return low if low == high else f"{low} to {high}"

    def words(self, value: float) -> str:
        """Return `value` with the unit of this one."""
        return FORMATS[self.unit](value) if self.unit in FORMATS else format_si(value, self.unit)

    def __str__(self) -> str:
        if self.interval is None:
            return f"about {self.words(self.value)}"
        return f"{self.words(self.value)} ({format_interval(self.interval, self.words)})"

    def scaled(self, factor: float, unit: str) -> "Estimate":
        """Return it times an exactly known positive `factor`, in another unit."""
        low, high = self.interval or (None, None)
        ends = (low and low * factor, high and high * factor)
        return replace(self, value=self.value * factor, low=ends[0], high=ends[1], unit=unit)

    def inverse(self, amount: float, unit: str) -> "Estimate":
        """Return how often it, which must be positive, goes into a known `amount`: a rate, from a time."""
        low, high = self.interval or (None, None)
        ends = (high and amount / high, low and amount / low)
        return replace(self, value=amount / self.value, low=ends[0], high=ends[1], unit=unit)
