"""Figures that no device and no case can have: a recording that states one would draw wrong numbers."""

from gpuexplore.dtypes import FORMATS, dtype_named
from gpuexplore.errors import InvalidInput
from gpuexplore.measure.check.correctness import tolerance
from gpuexplore.measure.check.elements import widest_tolerance
from gpuexplore.measure.check.guard import work
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.model import Device, Experiment, Result, Shape, ThreadRoofs
from gpuexplore.operations import operation_named
from gpuexplore.operations.benchmark import BENCHMARK
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.growth import AS_SUMMED, Growth

ROUNDING = 1e-9  # of a tolerance that was written as text
MOST_WORK = 2**28  # FLOPs and elements of all inputs and references that are made again for one file
WIDEST = 0.1  # tolerance of what is too large for that, where a ReLU near zero or underflow can widen it


def check_names(experiment: Experiment) -> None:
    """Raise when this version does not know an operation, implementation, dtype or shape of `experiment`."""
    operation = operation_named(experiment.operation)
    for implementation in experiment.implementations:
        operation.implementation_named(implementation)
    for dtype in experiment.dtypes:
        dtype_named(dtype)
    for shape in experiment.shapes:
        check_shape(shape, operation)


def check_shape(shape: Shape, operation: Operation) -> None:
    """Raise when `shape` is none of `operation`, or beyond its limits."""
    if tuple(name for name, _ in shape.axes) != (*operation.axes, *operation.flags_of(shape)):
        raise InvalidInput.of(f"axes of {operation.name}", shape, operation.axes)
    for axis, length in shape.axes:
        most = operation.limits.get(axis, 1)
        if length > most:
            raise InvalidInput.of(f"{axis} of {operation.name}", length, f"1 to {most}")
    if problem := operation.problem(shape):
        raise InvalidInput(f"shape {shape} of {operation.name}: {problem}")


def check_device(device: Device) -> None:
    """Raise when a figure of `device` is not above zero, or a peak is of an unknown format."""
    found = [(name, getattr(device, name)) for name in ("cores", "memory_bytes", "cache_bytes", "clock_hz")]
    found += [figure for roofs in (device, device.one_thread) if roofs for figure in _figures(roofs)]
    for name, value in found:
        if value is not None and value <= 0:
            raise InvalidInput.of(f"{name} of {device.id}", value, "numbers above 0; null where it is unknown")
    for peak in (*device.peaks, *(device.one_thread.peaks if device.one_thread else ())):
        if peak.dtype not in FORMATS:
            raise InvalidInput.of(f"peak of {device.id}", peak.dtype, FORMATS)


def _growth(result: Result) -> Growth:
    """Return the growth of roundings of the implementation where it was measured."""
    case, device = result.case, result.environment.device if result.environment else None
    implementation = operation_named(case.operation).implementation_named(case.implementation)
    return implementation.growth(case.shape, dtype_named(case.dtype), device) if device else AS_SUMMED


def _figures(roofs: Device | ThreadRoofs) -> list[tuple[str, float]]:
    """Return the rates and sizes of a device, or of one thread of it, by name."""
    found: list[tuple[str, float]] = [(f"{peak.unit} peak of {peak.dtype}", peak.flop_per_s) for peak in roofs.peaks]
    found += [("bandwidth", roofs.bandwidth.bytes_per_s)] if roofs.bandwidth else []
    found += [("bandwidth with ordinary stores", roofs.ordinary_stores.bytes_per_s)] if roofs.ordinary_stores else []
    found += [(f"bandwidth of level {cache.level}", cache.bandwidth.bytes_per_s) for cache in roofs.caches]
    found += [("level of a cache", cache.level) for cache in roofs.caches]
    return found + [(f"size of level {cache.level}", cache.size_bytes) for cache in roofs.caches]


def check_result(result: Result, most_work: int = MOST_WORK) -> int:
    """Raise when a result contradicts itself: called OK with an error beyond its tolerance, or with a negative time.

    Args:
        result: of a file that anybody wrote.
        most_work: FLOPs and elements that may be computed again for its tolerance.

    Returns:
        How many were.
    """
    accuracy, measurement = result.accuracy, result.measurement
    if result.seed is not None and result.seed < 0:
        raise InvalidInput.of("seed", result.seed, "whole numbers from 0")
    if accuracy and not (accuracy.tolerance >= 0 and (accuracy.relative_error or 0.0) >= 0):
        raise InvalidInput.of("accuracy", accuracy.relative_error, "errors and tolerances from 0")
    if measurement is None or result.case.operation == BENCHMARK.name:
        return 0
    if accuracy is None:
        raise InvalidInput("ok without its accuracy: a wrong kernel is never timed")
    if not accuracy.within:
        raise InvalidInput(f"ok with an error of {accuracy.relative_error}, beyond its tolerance {accuracy.tolerance}")
    most, spent = _most_tolerance(result, accuracy.tolerance, most_work)
    if accuracy.tolerance > most * (1 + ROUNDING):
        raise InvalidInput.of("tolerance", accuracy.tolerance, f"up to {most}, which rounding explains")
    if (measurement.first_call_s is not None and measurement.first_call_s <= 0) or measurement.batch < 1:
        values = f"{measurement.first_call_s}, {measurement.batch}"
        raise InvalidInput.of("first call and batch", values, "seconds above 0, and whole numbers from 1")
    return spent


def _most_tolerance(result: Result, claimed: float, most_work: int) -> tuple[float, int]:
    """Return the largest tolerance that rounding explains, and the FLOPs and elements that were computed for it."""
    operation, dtype = operation_named(result.case.operation), dtype_named(result.case.dtype)
    most = tolerance(operation, result.case.shape, dtype, _growth(result))
    if claimed <= most * (1 + ROUNDING) or result.seed is None:
        return most, 0
    if (needed := work(operation, result.case.shape)) > most_work:
        may_underflow = dtype.itemsize_bytes < 4 and not operation.is_matrix_product
        return max(most, WIDEST if operation.across_kinks or may_underflow else 0.0), 0
    inputs = make_inputs(operation, result.case.shape, dtype, "normal", seed=result.seed)
    return widest_tolerance(Reference(operation, dtype, inputs, result.seed), result.case.shape), needed
