"""The worth of moving data to a GPU: pure arithmetic on times that were measured or predicted."""

from collections.abc import Sequence

from gpuexplore.core.model import Device
from gpuexplore.features.transfer.analysis.comparison import (
    BreakEven,
    ComparedSide,
    SizePoint,
    break_even_size,
    compare,
    side_of,
    uses_that_pay,
    which_is_faster,
)
from gpuexplore.features.transfer.analysis.link import Path, TimeSpan, measured_path, path_to
from gpuexplore.features.transfer.measure.contract import Part, TransferReading, TransferReadings

__all__ = [
    "BreakEven",
    "ComparedSide",
    "Path",
    "SizePoint",
    "TimeSpan",
    "break_even_size",
    "compare",
    "measured_path",
    "path_to",
    "readings_of",
    "side_of",
    "this_cpu",
    "uses_that_pay",
    "which_is_faster",
]


def readings_of(observed: Sequence[TransferReadings], part: Part) -> tuple[TransferReading, ...]:
    """Return the readings of one part; none while it is not measured."""
    return tuple(reading for each in observed if each.part == part for reading in each.readings)


def this_cpu(devices: Sequence[Device]) -> Device | None:
    """Return the CPU among the devices of this machine."""
    return next((device for device in devices if device.kind == "cpu"), None)
