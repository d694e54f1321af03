"""Time of a transfer over a link: measured where it was measured, else predicted from the link's peak.

Predicted is a cost for each transfer plus bytes over a share of the peak. Packets cost a tenth to a third of it; data
in pageable memory are copied into pinned memory by the driver first, in pieces, at the speed of the host. The shares
are assumptions, wide enough for most hosts, and no measurement: see
https://developer.nvidia.com/blog/how-optimize-data-transfers-cuda-cc/
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, log
from typing import Literal

import numpy as np

from gpuexplore.analysis.prediction import UncertainValue
from gpuexplore.analysis.verdict.times import doubts_of
from gpuexplore.core import Device, InvalidInput, check_known, widened
from gpuexplore.features.transfer.measure.contract import SIZES_BYTES, Part, TransferReading, TransferReadings
from gpuexplore.hardware import SOURCE, Link, row_of

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


Memory = Literal["pageable", "pinned"]
Direction = Literal["host to device", "device to host"]
OWN = "own"  # the link that the table of accelerators has for the GPU
LATENCY = TimeSpan(10e-6, 5e-6, 25e-6, "predicted")  # of one transfer: a call of the driver and a wait
ASSUMED_SOURCE = "https://developer.nvidia.com/blog/how-optimize-data-transfers-cuda-cc/"
SHARES: Mapping[Memory, UncertainValue] = {  # of a link's peak; large transfers lie within in 9 of 10
    "pageable": UncertainValue(0.40, 0.15, 0.75),
    "pinned": UncertainValue(0.78, 0.65, 0.90),
}
LINKS: Mapping[str, Link] = {
    f"pcie{generation}-x{lanes}": Link(generation, lanes) for generation in (3, 4, 5) for lanes in (16, 8, 4)
}


@dataclass(frozen=True, slots=True)
class Path:
    """The way between this host and a GPU.

    Attributes:
        title: of the link, e.g. ``PCIe 3.0 x16``.
        bytes_per_s: its theoretical peak in one direction; None where it is unknown.
        source: who says so.
        memory: the host's.
        readings: transfers that were measured over it; none: they are predicted.
    """

    title: str
    bytes_per_s: float | None
    source: str
    memory: Memory
    readings: tuple[TransferReading, ...] = ()

    def move(self, byte_count: float, direction: Direction) -> TimeSpan | None:
        """Return the time of one transfer; None where neither a measurement nor a peak is known."""
        known = [reading for reading in self.readings if reading.name == f"torch {direction}, {self.memory}"]
        if any(reading.median_s for reading in known):
            # The time between the measured sizes, straight on log scales; beyond the largest at its rate.
            found = {reading.byte_count: span for reading in known if (span := measured_span(reading))}
            largest = max(found)
            if byte_count >= largest:
                return found[largest].times(byte_count / largest)
            return interpolated(byte_count, sorted(found.items(), key=lambda pair: pair[0]))
        return None if self.bytes_per_s is None else _predicted_transfer(byte_count, self.bytes_per_s, self.memory)


def path_to(gpu: Device, link: str = OWN, memory: Memory = "pageable") -> Path:
    """Return the assumed way to a GPU of the table.

    Args:
        link: a key of LINKS, or OWN.

    Raises:
        InvalidInput: no such link or memory.
    """
    check_known("memory", memory, SHARES)
    if link != OWN and link not in LINKS:
        raise InvalidInput.of("link", link, (OWN, *LINKS))
    row = row_of(gpu)
    own_bytes_per_s = row.pcie_bytes_per_s if row else None
    if link == OWN and row and own_bytes_per_s:
        return Path(f"link of {row.name}", own_bytes_per_s, row.source_url, memory)
    assumed = LINKS["pcie3-x16" if link == OWN else link]  # where the table has none
    return Path(assumed.title, assumed.bytes_per_s, SOURCE, memory)


def measured_path(link: Link | None, readings: Sequence[TransferReading], memory: Memory) -> Path:
    """Return the way to a GPU of this machine, with its measured transfers."""
    title = link.title if link else "unknown link"
    return Path(title, link.bytes_per_s if link else None, "NVML", memory, tuple(readings))


def _predicted_transfer(byte_count: float, peak_bytes_per_s: float, memory: Memory) -> TimeSpan:
    """Return how long a transfer should take over a link of this peak, with its 90 % interval."""
    share = SHARES[memory]
    return TimeSpan(
        LATENCY.time_s + byte_count / (peak_bytes_per_s * share.value),
        LATENCY.low_s + byte_count / (peak_bytes_per_s * share.high),
        LATENCY.high_s + byte_count / (peak_bytes_per_s * share.low),
        "predicted",
    )


def readings_of(observed: Sequence[TransferReadings], part: Part) -> tuple[TransferReading, ...]:
    """Return the readings of one part; none while it is not measured."""
    return tuple(reading for each in observed if each.part == part for reading in each.readings)


def predicted_rates(path: Path) -> tuple[TransferReading, ...]:
    """Return predicted transfers of each size from either memory, in the form of measured ones, named as predicted.

    The interval instead of the 95 % interval is the 90 % prediction interval; none without a peak.
    """
    if path.bytes_per_s is None:
        return ()
    found = []
    for memory in SHARES:
        for size in SIZES_BYTES:
            span = _predicted_transfer(size, path.bytes_per_s, memory)
            ends = (span.low_s, span.high_s)
            found.append(TransferReading(f"{memory}, predicted", memory, size, size, median_s=span.time_s, ci95_s=ends))
    return tuple(found)


def interpolated(at: float, known: Sequence[tuple[float, TimeSpan]]) -> TimeSpan:
    """Return the time at `at` on the straight lines, on log scales, between measured sizes; the first one's below."""
    sizes = np.log([size for size, _ in known])
    times = np.log([(span.time_s, span.low_s, span.high_s) for _, span in known])
    time_s, low_s, high_s = (exp(np.interp(log(max(at, 1)), sizes, column)) for column in times.T)
    return TimeSpan(time_s, low_s, high_s, "measured")
