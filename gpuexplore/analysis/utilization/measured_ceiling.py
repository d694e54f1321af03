"""The best that was measured on a device: a ceiling that no short loop gives, from large products and long streams.

It is a maximum of what was tried, so the true ceiling is at or above it.
"""

from collections.abc import Sequence
from math import prod

from gpuexplore.analysis.utilization.utilization import (
    arithmetic_of,
    byte_count,
    bytes_per_s,
    cache_mode,
    default_bandwidth,
    default_peak,
    device_of,
    flop_count,
    flop_per_s,
    shape_label,
)
from gpuexplore.devices.identity import same_unit
from gpuexplore.dtypes import dtype_named
from gpuexplore.model import Bandwidth, Device, Peak, Result, Unit
from gpuexplore.operations import operation_named

TILE_FLOP_COUNT = 2 * 128 * 128 * 2048  # one tile for each core: with fewer, cores have no work
FROM_MEMORY = 0.75  # of the bytes of a stream: STREAM's rule of arrays of four caches


def measured_peak(device: Device, dtype: str, unit: Unit, known: Sequence[Result]) -> Peak | None:
    """Return the best rate of large products in `dtype` on this device among `known`, or None."""
    units = {unit} | ({"matrix", "vector"} if same_units(device, dtype) else set())
    found = [
        result
        for result in known
        if is_large_product(result)
        and same_unit(device_of(result), device)
        and arithmetic_of(result) in {(dtype, unit) for unit in units}
    ]
    if not found:
        return None
    best = max(found, key=best_rate)
    return Peak(dtype, unit, best_rate(best), "measured_ceiling", f"best large product here: {case_and_date(best)}")


def measured_bandwidth(device: Device, known: Sequence[Result]) -> Bandwidth | None:
    """Return the best rate of streams through this device's memory among `known`, in bytes/s, or None."""
    found = [result for result in known if is_stream(result) and same_unit(device_of(result), device)]
    if not found:
        return None
    best = max(found, key=best_rate)
    return Bandwidth(best_rate(best), "measured_ceiling", f"best stream through memory here: {case_and_date(best)}")


def same_units(device: Device, dtype: str) -> bool:
    """Return whether products in `dtype` run on the vector units of `device`, for want of matrix units."""
    matrix, vector = device.peak(dtype, "matrix"), device.peak(dtype, "vector")
    return matrix is not None and vector is not None and matrix.flop_per_s == vector.flop_per_s


def is_large_product(result: Result) -> bool:
    """Return whether it is a product that only arithmetic limits: every core has work, and memory is fast enough.

    What is unknown about the device limits nothing.
    """
    device = device_of(result)
    if device is None or not _is_product(result) or flop_count(result.case) < TILE_FLOP_COUNT * (device.cores or 0):
        return False
    peak, bandwidth = default_peak(result), default_bandwidth(result)
    ridge = peak.flop_per_s / bandwidth.bytes_per_s if peak and bandwidth else 0.0
    return result.measurement is not None and flop_count(result.case) >= ridge * byte_count(result.case)


def is_stream(result: Result) -> bool:
    """Return whether memory delivered nearly all of the bytes, and no product was computed meanwhile."""
    if _is_product(result) or result.measurement is None:
        return False
    surely = bytes_from_memory(result)
    return surely is not None and surely >= FROM_MEMORY * byte_count(result.case)


def bytes_from_memory(result: Result) -> int | None:
    """Return the bytes that no cache can have delivered; None when the size of the cache is unknown.

    A cold cache has none of the inputs, though it can hold back what is written; a warm one has all it can hold.
    """
    device, case = device_of(result), result.case
    if device is None or device.cache_bytes is None:
        return None
    total, written = byte_count(case), prod(operation_named(case.operation).output(case.shape))
    held = written * dtype_named(case.dtype).itemsize_bytes if cache_mode(result) == "cold" else total
    return total - min(held, device.cache_bytes)


def best_rate(result: Result) -> float:
    """Return FLOP/s of a product, bytes/s of a stream."""
    return (flop_per_s(result) if _is_product(result) else bytes_per_s(result)) or 0.0


def case_and_date(result: Result) -> str:
    """Return what a reader needs to find a result: operation, shape, implementation, dtype and day."""
    case = result.case
    day = f", {result.environment.started_utc[:10]}" if result.environment else ""
    title = operation_named(case.operation).title
    return f"{title}, {shape_label(case.shape)}, {case.implementation} in {case.dtype}{day}"


def _is_product(result: Result) -> bool:
    return operation_named(result.case.operation).is_matrix_product
