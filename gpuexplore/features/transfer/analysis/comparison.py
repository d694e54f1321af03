"""An operation on this CPU and on a GPU, size by size: the work, and the transfers it needs.

The inputs go to the GPU, a transfer each, and the output comes back. Times that were measured are used as they are,
also between measured sizes; all others are predicted with their 90 % interval, in the kind of calls that is measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import add

from gpuexplore.analysis.prediction import Calibration, Conditions, predict
from gpuexplore.analysis.prediction.calls import calls_on
from gpuexplore.dtypes import dtype_named
from gpuexplore.features.transfer.analysis.link import Path, interpolated
from gpuexplore.features.transfer.analysis.span import Span, measured_span
from gpuexplore.features.transfer.measure.contract import CACHE, DTYPE, Reading, sizes_of
from gpuexplore.model import Case, Device, Shape
from gpuexplore.operations import operation_named
from gpuexplore.operations.contract import Operation


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: a device, and the times of the operation's calls that were measured on it, by size."""

    device: Device
    measured: tuple[tuple[int, Span], ...] = ()


Sides = tuple[Side, Side]  # the CPU and the GPU


@dataclass(frozen=True, slots=True)
class SizePoint:
    """One size.

    Attributes:
        size: the number its shape stands for.
        cpu: a call on this CPU.
        there: the inputs to the GPU.
        kernel: a call on the GPU, its data there.
        back: the output to the host.
    """

    size: int
    cpu: Span | None
    there: Span | None
    kernel: Span | None
    back: Span | None

    @property
    def move(self) -> Span | None:
        """Both ways; None where one is unknown."""
        return self.there + self.back if self.there and self.back else None

    @property
    def gpu(self) -> Span | None:
        """A call on the GPU with its transfers; None where a part is unknown."""
        return self.move + self.kernel if self.move and self.kernel else None


def side_of(device: Device, readings: Sequence[Reading] = ()) -> Side:
    """Return a device with the times of `readings`, those of the part ``work``."""
    found = [(reading.size, span) for reading in readings if reading.size and (span := measured_span(reading))]
    return Side(device, tuple(sorted(found, key=lambda pair: pair[0])))


def compare(operation: str, sides: Sides, path: Path, calibration: Calibration) -> tuple[SizePoint, ...]:
    """Return every size of the operation in fp32 on both, by the library of each device's vendor."""
    found = operation_named(operation)
    return tuple(_point(size, found, sides, path=path, calibration=calibration) for size in sizes_of(found))


def _point(size: int, operation: Operation, sides: Sides, *, path: Path, calibration: Calibration) -> SizePoint:
    cpu, gpu = (_work(size, operation, side, calibration) for side in sides)
    there, back = transfers(operation, operation.shape_of_size(size), path)
    return SizePoint(size, cpu, there, gpu, back)


def transfers(operation: Operation, shape: Shape, path: Path) -> tuple[Span | None, Span | None]:
    """Return the time of moving the inputs there, one transfer each, and of the output back."""
    itemsize_bytes = dtype_named(DTYPE).itemsize_bytes
    moves = [path.move(prod(lengths) * itemsize_bytes, "host to device") for lengths in operation.inputs(shape)]
    known = [move for move in moves if move is not None]
    there = reduce(add, known) if known and len(known) == len(moves) else None
    return there, path.move(prod(operation.output(shape)) * itemsize_bytes, "device to host")


def _work(size: int, operation: Operation, side: Side, calibration: Calibration) -> Span | None:
    known: Mapping[int, Span] = dict(side.measured)
    if size in known:
        return known[size]
    below = [pair for pair in side.measured if pair[0] < size]
    above = [pair for pair in side.measured if pair[0] > size]
    if below and above:
        return interpolated(size, below[-1], above[0])
    case = Case(operation.name, operation.shape_of_size(size), DTYPE, operation.vendor_library.name, side.device.id)
    found = predict(case, side.device, calibration, Conditions(calls_on(side.device, CACHE)))
    if found.time_s is None or found.low_s is None or found.high_s is None:
        return None
    return Span(found.time_s, found.low_s, found.high_s, "predicted")
