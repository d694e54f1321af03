"""A time with the interval it may lie in, and where it comes from."""

from dataclasses import dataclass
from typing import Literal

SpanOrigin = Literal["measured", "predicted"]


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds, with what they are at least and at most.

    Attributes:
        time_s: the median.
        low_s: lower end: of a 95 % interval where it was measured, of a 90 % prediction interval where not.
        high_s: upper end of the same.
        origin: a sum is measured only where all its parts are.
    """

    time_s: float
    low_s: float
    high_s: float
    origin: SpanOrigin

    def __add__(self, other: "Span") -> "Span":
        """Return the sum; ends are added to ends, so its interval is wider than either's and rather too wide."""
        origin: SpanOrigin = "measured" if self.origin == other.origin == "measured" else "predicted"
        return Span(self.time_s + other.time_s, self.low_s + other.low_s, self.high_s + other.high_s, origin)

    def times(self, factor: float) -> "Span":
        """Return so many of it, one after the other."""
        return Span(self.time_s * factor, self.low_s * factor, self.high_s * factor, self.origin)


def measured_span(time_s: float, interval_s: tuple[float, float] | None) -> Span:
    """Return a measured time; without an interval it is taken as it is."""
    low_s, high_s = interval_s or (time_s, time_s)
    return Span(time_s, low_s, high_s, "measured")
