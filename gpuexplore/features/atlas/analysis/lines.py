"""The predicted lines of the atlas: one shape, smaller and larger in the axes that its operation grows in."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from gpuexplore.analysis.prediction import Prediction
from gpuexplore.core.dtypes import format_named
from gpuexplore.core.model import Case, Device, Shape
from gpuexplore.operations import operation_named


@dataclass(frozen=True, slots=True)
class LinePoint:
    """A predicted call on a line; its prediction has a time.

    Attributes:
        prediction: of the call.
        work: as of a measured point.
    """

    prediction: Prediction
    work: int

    def rate(self, time_s: float) -> float:
        """Return the work a second where a call takes `time_s`."""
        return self.work / time_s

    def share(self, time_s: float) -> float | None:
        """Return the fraction of the peak that decides where a call takes `time_s`, as of a measured point."""
        case = self.prediction.case
        device = self.prediction.device
        peak = self.prediction.peak
        contract = operation_named(case.operation)
        byte_count = contract.byte_count(case.shape, format_named(case.dtype))
        compute_s = contract.flop_count(case.shape) / peak.flop_per_s if contract.is_matrix_product and peak else 0.0
        memory_s = byte_count / device.bandwidth.bytes_per_s if device.bandwidth else 0.0
        in_cache = device.cache_bytes is not None and byte_count <= device.cache_bytes
        if in_cache and compute_s < memory_s:
            return None
        return max(compute_s, memory_s) / time_s or None


def work_of(operation: str, dtype: str) -> Callable[[Shape], int]:
    """Return what gives a shape's work: FLOPs of a product, bytes of any other operation."""
    contract = operation_named(operation)
    if contract.is_matrix_product:
        return contract.flop_count
    row = format_named(dtype)
    return lambda shape: contract.byte_count(shape, row)


def line(predictions: Iterable[Prediction]) -> tuple[LinePoint, ...]:
    """Return a point for each prediction, without those of which nothing can be said."""
    return tuple(
        LinePoint(each, work_of(each.case.operation, each.case.dtype)(each.case.shape))
        for each in predictions
        if each.time_s
    )


def case_of(operation: str, shape: Shape, dtype: str, device: Device) -> Case:
    """Return a call as the device's vendor's library makes it: what is predicted."""
    return Case(operation, shape, dtype, operation_named(operation).vendor_library.name, device.id)


@cache
def _growing_axes(operation: str) -> frozenset[str]:
    """Return the axes that follow the size of an operation, such as ``s`` of an attention."""
    small, large = (dict(operation_named(operation).shape_of_size(size).axes) for size in (64, 128))  # any two sizes do
    return frozenset(axis for axis, length in large.items() if length != small[axis])


def _grown(operation: str, shape: Shape, factor: float) -> Shape:
    """Return `shape` with its growing axes multiplied by `factor`, each from 1 to the operation's limit."""
    limits = operation_named(operation).limits
    growing = _growing_axes(operation)
    return Shape(
        tuple(
            (axis, min(limits[axis], max(1, round(length * factor))) if axis in growing else length)
            for axis, length in shape.axes
        )
    )


def shapes_between(
    operation: str, shape: Shape, dtype: str, ends: tuple[float, float], *, count: int
) -> tuple[Shape, ...]:
    """Return at most `count` shapes, each once, from the work `ends[0]` to `ends[1]`, in the proportions of `shape`.

    Args:
        operation: its name.
        shape: any of the line.
        dtype: of its arrays.
        ends: work at the ends of the line; it ends before where an axis reaches the limit of the operation.
        count: at least 2.
    """
    contract = operation_named(operation)
    work = work_of(operation, dtype)
    most = min(contract.limits[axis] / shape[axis] for axis in _growing_axes(operation))
    low, high = (_factor(lambda factor: work(_grown(operation, shape, factor)), end, most) for end in ends)
    steps = (low * (high / low) ** (i / (count - 1)) for i in range(count))
    found = dict.fromkeys(_grown(operation, shape, step) for step in steps)
    return tuple(each for each in found if contract.problem(each) is None)


def _factor(work_at: Callable[[float], float], work: float, most: float) -> float:
    """Return the factor at which the work is reached, `most` at the most."""
    low = 2.0**-24
    high = most
    for _ in range(40):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if work_at(middle) < work else (low, middle)
    return high
