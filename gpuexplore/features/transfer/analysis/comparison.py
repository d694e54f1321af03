"""An operation on this CPU and on a GPU, size by size: the work, and the transfers it needs.

The inputs go to the GPU, a transfer each, and the output comes back. Times that were measured are used as they are,
also between measured sizes; all others are predicted with their 90 % interval, in the kind of calls that is measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import ceil, exp, log, prod
from operator import add

from gpuexplore.analysis.prediction import Calibration, Conditions, calls_on, predict_each
from gpuexplore.analysis.verdict import Estimate, Verdict, Words, quotient
from gpuexplore.analysis.verdict import compare as verdict_on
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.model import Case, Device, Shape
from gpuexplore.features.transfer.analysis import Path, TimeSpan, interpolated, measured_span
from gpuexplore.features.transfer.measure.contract import CACHE, DTYPE, TransferReading, sizes_of
from gpuexplore.operations import Operation, operation_named


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One of the two: a device, and the times of the operation's calls that were measured on it, by size."""

    device: Device
    measured: tuple[tuple[int, TimeSpan], ...] = ()


Sides = tuple[ComparedSide, ComparedSide]  # the CPU and the GPU


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
    cpu: TimeSpan | None
    there: TimeSpan | None
    kernel: TimeSpan | None
    back: TimeSpan | None

    @property
    def move(self) -> TimeSpan | None:
        """Both ways; None where one is unknown."""
        return self.there + self.back if self.there and self.back else None

    @property
    def gpu(self) -> TimeSpan | None:
        """A call on the GPU with its transfers; None where a part is unknown."""
        return self.move + self.kernel if self.move and self.kernel else None


def side_of(device: Device, readings: Sequence[TransferReading] = ()) -> ComparedSide:
    """Return a device with the times of `readings`, those of the part ``work``."""
    found = [(reading.size, span) for reading in readings if reading.size and (span := measured_span(reading))]
    return ComparedSide(device, tuple(sorted(found, key=lambda pair: pair[0])))


def compare(operation: str, sides: Sides, path: Path, calibration: Calibration) -> tuple[SizePoint, ...]:
    """Return every size of the operation in fp32 on both, by the library of each device's vendor."""
    found = operation_named(operation)
    sizes = sizes_of(found)
    points = []
    for size, cpu, gpu in zip(sizes, *(_work(sizes, found, side, calibration) for side in sides), strict=True):
        there, back = _transfers(found, found.shape_of_size(size), path)
        points.append(SizePoint(size, cpu, there, gpu, back))
    return tuple(points)


def _transfers(operation: Operation, shape: Shape, path: Path) -> tuple[TimeSpan | None, TimeSpan | None]:
    """Return the time of moving the inputs there, one transfer each, and of the output back."""
    itemsize_bytes = dtype_named(DTYPE).itemsize_bytes
    moves = [path.move(prod(lengths) * itemsize_bytes, "host to device") for lengths in operation.inputs(shape)]
    known = [move for move in moves if move is not None]
    there = reduce(add, known) if known and len(known) == len(moves) else None
    return there, path.move(prod(operation.output(shape)) * itemsize_bytes, "device to host")


def _work(
    sizes: Sequence[int], operation: Operation, side: ComparedSide, calibration: Calibration
) -> list[TimeSpan | None]:
    """Return the time of a call of each size on one side: measured, between measured ones, else predicted."""
    found = dict(side.measured)
    ends = (min(found), max(found)) if found else (0, 0)
    between = [size for size in sizes if size not in found and ends[0] < size < ends[1]]
    found |= {size: interpolated(size, side.measured) for size in between}
    left = [size for size in sizes if size not in found]
    names = DTYPE, operation.vendor_library.name, side.device.id
    asked = [(Case(operation.name, operation.shape_of_size(size), *names), side.device) for size in left]
    conditions = Conditions(calls_on(side.device, CACHE))
    for size, each in zip(left, predict_each(asked, calibration, conditions, explained=False), strict=True):
        if each.time_s is not None and each.low_s is not None and each.high_s is not None:
            found[size] = TimeSpan(each.time_s, each.low_s, each.high_s, "predicted")
    return [found.get(size) for size in sizes]


End = Callable[[TimeSpan], float]
# The best case for the GPU takes its times and the transfers at their low end and the CPU's at its high end.
LIKELY: tuple[End, End] = (lambda span: span.time_s, lambda span: span.time_s)
BEST: tuple[End, End] = (lambda span: span.high_s, lambda span: span.low_s)  # of the CPU, of the GPU and the transfers
WORST: tuple[End, End] = (lambda span: span.low_s, lambda span: span.high_s)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """A size or a number of uses from which on the GPU wins.

    Attributes:
        value: the likely one; None: it never pays, up to the largest size or for any number of uses.
        low: in the best case for the GPU; None: not even then.
        high: in the worst case; None: then it never pays.
    """

    value: int | None
    low: int | None
    high: int | None


def break_even_size(points: Sequence[SizePoint]) -> BreakEven | None:
    """Return the size from which on one use on the GPU, transfers included, takes no longer than on this CPU.

    From there on the GPU has to win at every larger size; between two sizes the times are straight on log scales. None
    where the times of one of the two are unknown at every size.
    """
    if all(point.cpu is None or point.gpu is None for point in points):
        return None
    return BreakEven(*(_first_size(points, ends) for ends in (LIKELY, BEST, WORST)))


def uses_that_pay(point: SizePoint) -> BreakEven | None:
    """Return how many uses of data that are moved once, and whose result comes back once, pay for moving them.

    None where one of the times is unknown.
    """
    if point.cpu is None or point.kernel is None or point.move is None:
        return None
    moved = (point.cpu, point.kernel, point.move)
    return BreakEven(*(_uses(*moved, ends) for ends in (LIKELY, BEST, WORST)))


def which_is_faster(point: SizePoint, gpu: str) -> Verdict:
    """Return whether one use on `gpu`, transfers included, is faster than on this CPU."""
    words = Words(f"faster on this CPU than on {gpu}", None, f"faster on {gpu} than on this CPU", "which is faster")
    return verdict_on(quotient(_estimate(point.cpu), _estimate(point.gpu)), 1.0, words=words)


def _estimate(span: TimeSpan | None) -> Estimate | None:
    return Estimate(span.time_s, span.low_s, span.high_s, "s", span.origin) if span else None


def _first_size(points: Sequence[SizePoint], ends: tuple[End, End]) -> int | None:
    leads = [(point.size, _lead(point, ends)) for point in points]
    known = [(size, lead) for size, lead in leads if lead is not None]
    if not known or known[-1][1] < 0:
        return None
    for (size, lead), (next_size, next_lead) in reversed(list(pairwise(known))):
        if lead < 0:
            share = -lead / (next_lead - lead)
            return ceil(exp((1 - share) * log(size) + share * log(next_size)))
    return known[0][0]


def _lead(point: SizePoint, ends: tuple[End, End]) -> float | None:
    """Return the logarithm of how many times as long the CPU takes; None where a time is unknown."""
    if point.cpu is None or point.gpu is None:
        return None
    of_cpu, of_gpu = ends
    return log(of_cpu(point.cpu) / of_gpu(point.gpu))


def _uses(cpu: TimeSpan, kernel: TimeSpan, move: TimeSpan, ends: tuple[End, End]) -> int | None:
    of_cpu, of_gpu = ends
    gain_s = of_cpu(cpu) - of_gpu(kernel)
    if gain_s <= 0 or of_gpu(move) / gain_s > 1e9:  # more is never
        return None
    return max(1, ceil(of_gpu(move) / gain_s))


def stack(
    point: SizePoint, *, cpu_first: TimeSpan | None, gpu_first: TimeSpan | None
) -> Mapping[tuple[str, str], TimeSpan | None]:
    """Return the time of each part by where and what it is: on this CPU, which moves nothing, and on the GPU."""
    return {
        ("CPU", "first call"): cpu_first,
        ("CPU", "kernel"): point.cpu,
        ("GPU", "first call"): gpu_first,
        ("GPU", "host to device"): point.there,
        ("GPU", "kernel"): point.kernel,
        ("GPU", "device to host"): point.back,
    }


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
