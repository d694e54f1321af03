"""A time with the interval it may lie in, and where it comes from."""

from dataclasses import dataclass
from math import hypot
from typing import Literal

from gpuexplore.analysis.verdict.times import doubts_of
from gpuexplore.features.transfer.measure.contract import TransferReading
from gpuexplore.statistics import widened

SpanOrigin = Literal["measured", "predicted"]


@dataclass(frozen=True, slots=True)
class TimeSpan:
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

    def __add__(self, other: "TimeSpan") -> "TimeSpan":
        """Return the sum; ends are added to ends, so its interval is wider than either's and rather too wide."""
        origin: SpanOrigin = "measured" if self.origin == other.origin == "measured" else "predicted"
        return TimeSpan(self.time_s + other.time_s, self.low_s + other.low_s, self.high_s + other.high_s, origin)

    def times(self, factor: float) -> "TimeSpan":
        """Return so many of it, one after the other."""
        return TimeSpan(self.time_s * factor, self.low_s * factor, self.high_s * factor, self.origin)


def measured_span(reading: TransferReading) -> TimeSpan | None:
    """Return the time of a reading, its interval widened by what its flags are evidence of; None of one sample."""
    if not reading.median_s or reading.n == 1:
        return None
    deviation = hypot(*(doubt.deviation for doubt in doubts_of(reading.flags)))
    low_s, high_s = widened(reading.ci95_s or (reading.median_s, reading.median_s), reading.median_s, deviation)
    return TimeSpan(reading.median_s, min(low_s, reading.median_s), max(high_s, reading.median_s), "measured")
