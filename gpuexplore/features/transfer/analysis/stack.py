"""The first use of an operation, part by part: first call, data there, kernel, result back."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.features.transfer.analysis.comparison import SizePoint
from gpuexplore.features.transfer.analysis.span import TimeSpan
from gpuexplore.features.transfer.measure.contract import TransferReading

FIRST_CALL = "first call"


@dataclass(frozen=True, slots=True)
class StackPart:
    """A part of a first use; `span` is None where its time is unknown."""

    where: str
    part: str
    span: TimeSpan | None


def stack(point: SizePoint, *, cpu_first: TimeSpan | None, gpu_first: TimeSpan | None) -> tuple[StackPart, ...]:
    """Return the parts on this CPU, which moves nothing, and on the GPU."""
    return (
        StackPart("CPU", FIRST_CALL, cpu_first),
        StackPart("CPU", "kernel", point.cpu),
        StackPart("GPU", FIRST_CALL, gpu_first),
        StackPart("GPU", "host to device", point.there),
        StackPart("GPU", "kernel", point.kernel),
        StackPart("GPU", "device to host", point.back),
    )


def first_call_cost(readings: Sequence[TransferReading]) -> TimeSpan | None:
    """Return what the first call took beyond a later one, at most of all sizes; None where nothing was measured.

    A library is loaded, threads start and kernels are compiled or chosen once in a process, whatever the size.
    """
    costs = [
        max(0.0, reading.first_call_s - reading.median_s)
        for reading in readings
        if reading.first_call_s is not None and reading.median_s is not None
    ]
    return TimeSpan(max(costs), max(costs), max(costs), "measured") if costs else None
