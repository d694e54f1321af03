"""Work and rates: how many FLOPs and bytes a case stands for, and how many a second were achieved.

FLOPs count a multiply-add as 2; bytes are the least that must move (each input read once, each
output written once), so a rate in bytes/s can be below what the memory really carried.
"""

from collections.abc import Sequence
from functools import lru_cache

from gpuexplore.dtypes import UNKNOWN_DTYPE, dtype_named
from gpuexplore.model import Case, Result, Shape
from gpuexplore.operations import operation_named
from gpuexplore.operations.benchmark import BENCHMARK
from gpuexplore.units import UNKNOWN

MOST_UNNAMED_AXES = 3
MOST_COUNTS = 4096  # that are kept: every rule about a result asks for its counts again


def flop_count(case: Case) -> int:
    """Return the floating-point operations of one call."""
    return _flop_count(case.operation, case.shape)


def byte_count(case: Case) -> int:
    """Return the bytes one call moves at least, in the case's dtype."""
    return _byte_count(case.operation, case.shape, case.dtype)


def has_nominal_flops(case: Case) -> bool:
    """Return whether its FLOPs are a convention, from which no compute limit follows."""
    return operation_named(case.operation).nominal_flops(case.shape)


@lru_cache(maxsize=MOST_COUNTS)
def _flop_count(operation: str, shape: Shape) -> int:
    return operation_named(operation).flop_count(shape)


@lru_cache(maxsize=MOST_COUNTS)
def _byte_count(operation: str, shape: Shape, dtype: str) -> int:
    return operation_named(operation).byte_count(shape, dtype_named(dtype))


def flop_per_s(result: Result) -> float | None:
    """Return the achieved FLOP/s at the median time; None without a measurement, or where the work is unknown."""
    return flop_count(result.case) / result.measurement.median_s if result.measurement and _is_known(result) else None


def bytes_per_s(result: Result) -> float | None:
    """Return the achieved bytes/s at the median time; None without a measurement, or where the work is unknown."""
    return byte_count(result.case) / result.measurement.median_s if result.measurement and _is_known(result) else None


def _is_known(result: Result) -> bool:
    return result.case.operation != BENCHMARK.name


def size_of(case: Case) -> int | None:
    """Return the one number this shape stands for, e.g. 512 for a square product; None for other shapes."""
    return operation_named(case.operation).size_of(case.shape)


def case_label(case: Case) -> str:
    """Return how sentences name a case among those of its shape and device: ``torch in fp32``."""
    return f"{case.implementation} in {case.dtype}" if case.dtype != UNKNOWN_DTYPE.name else case.implementation


def shape_label(shape: Shape) -> str:
    """Return a shape as readers see it: ``512 × 512 × 512``, ``n = 1,000,000``; axes by name where many, or words."""
    if not shape.axes:
        return UNKNOWN
    has_words = any(len(name) > 1 for name, _ in shape.axes)
    if has_words or len(shape.axes) == 1 or len(shape.axes) > MOST_UNNAMED_AXES:
        return ", ".join(f"{name} = {length:,}" for name, length in shape.axes)
    return " × ".join(f"{length:,}" for length in shape)


def shapes_by_work(results: Sequence[Result]) -> list[Shape]:
    """Return the shapes of `results`, each once, from the least FLOPs and bytes to the most."""
    cases = {result.case.shape: result.case for result in results}
    return sorted(cases, key=lambda shape: (flop_count(cases[shape]), byte_count(cases[shape])))
