"""Utilization: the fraction of a peak that a result reached, and the peak that is its default.

MFU (model FLOPs utilization) = achieved FLOP/s / peak FLOP/s. An unknown peak gives None, never a
neighbour's. An implementation that stores bf16 and computes in fp32 is compared with the fp32 peak. A measured ceiling
is the best of large products and long streams.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from gpuexplore.core import (
    UNKNOWN,
    Bandwidth,
    CacheRoof,
    CacheState,
    Case,
    Device,
    Peak,
    Result,
    Shape,
    ThreadRoofs,
    Unit,
    format_bytes,
)
from gpuexplore.core.dtypes import UNKNOWN_DTYPE, dtype_named
from gpuexplore.hardware.identity import same_unit
from gpuexplore.operations import BENCHMARK, operation_named

MOST_COUNTS = 4096  # cached counts: every rule about a result reads them again


def device_of(result: Result) -> Device | None:
    """Return the device a result was measured on, as it was then; None when the result does not name it."""
    return None if result.environment is None else result.environment.device


def measured_clock_hz(result: Result) -> float | None:
    """Return the clock in Hz the device ran at when this result's sampling ended; None when no driver stated it."""
    return (result.environment.after.clock_hz or None) if result.environment else None


def arithmetic_of(result: Result) -> tuple[str, Unit]:
    """Return the dtype and the units that a result's arithmetic ran in."""
    implementation = operation_named(result.case.operation).implementation_named(result.case.implementation)
    return implementation.computes_in(result.case.dtype, device_of(result))


def custom_peak(result: Result, custom_peaks: Iterable[Peak]) -> Peak | None:
    """Return the one of `custom_peaks` that is of this result's arithmetic, or None."""
    found = ThreadRoofs(tuple(custom_peaks)).peak(*arithmetic_of(result))
    return replace(found, kind="own") if found else None


def default_peak(result: Result, custom_peaks: Iterable[Peak] = ()) -> Peak | None:
    """Return the compute peak this result is compared with by default, or None when it is unknown.

    Args:
        custom_peaks: peaks a user entered; one of the same dtype and unit replaces the device's.
    """
    device = device_of(result)
    return custom_peak(result, custom_peaks) or (None if device is None else device.peak(*arithmetic_of(result)))


def mfu(result: Result, peak: Peak | None) -> float | None:
    """Return achieved FLOP/s over `peak` as a fraction.

    None without a measurement, with an unknown peak, or for an operation without FLOPs.
    """
    rate = flop_per_s(result)
    return rate / peak.flop_per_s if rate and peak else None


def default_bandwidth(result: Result, custom: Bandwidth | None = None) -> Bandwidth | None:
    """Return the memory bandwidth this result is compared with by default, or None when it is unknown.

    Args:
        custom: what a user entered, instead of the device's.
    """
    device = device_of(result)
    return custom or (None if device is None else device.bandwidth)


def bandwidth_utilization(result: Result, bandwidth: Bandwidth | None) -> float | None:
    """Return achieved bytes/s over `bandwidth` as a fraction.

    None without a measurement, with an unknown bandwidth, or when the data stay in a cache.
    """
    rate = bytes_per_s(result)
    return None if rate is None or bandwidth is None or is_cache_resident(result) else rate / bandwidth.bytes_per_s


def cache_mode(result: Result) -> CacheState:
    """Return how the caches were treated: what the run flagged, else what was asked for, else warm.

    Warm is the careful guess: it counts no memory bandwidth that a cache may have delivered.
    """
    flagged = {flag.name for flag in result.flags}
    if "cold" in flagged or "warm" in flagged:
        return "cold" if "cold" in flagged else "warm"
    return "cold" if result.case.options.cache == "cold" else "warm"


def is_cache_resident(result: Result) -> bool:
    """Return whether its data stay in a cache, as far as is known, so that memory bandwidth does not bound it."""
    device = device_of(result)
    if device is None or cache_mode(result) == "cold":
        return False
    return byte_count(result.case) <= (cached_bytes(device) or 0)


def cache_resident_reason(result: Result) -> str | None:
    """Return why memory bandwidth does not bound this result (its data stay in a cache), or None."""
    device = device_of(result)
    if device is None or not is_cache_resident(result):
        return None
    fitting = smallest_cache(device.caches, byte_count(result.case))
    name, size_bytes = (f"L{fitting.level}", fitting.size_bytes) if fitting else ("last-level", device.cache_bytes)
    return (
        f"its {format_bytes(byte_count(result.case))} stay in the {name} cache ({format_bytes(size_bytes)}), so memory "
        "bandwidth does not bound it"
    )


def cached_bytes(device: Device) -> int | None:
    """Return how many bytes stay in a cache that is faster than memory, as was measured; else those of the last level.

    CPUID in a virtual machine gives the last-level cache of the host, of which the machine may have a small part.
    """
    return max((cache.size_bytes for cache in device.caches), default=device.cache_bytes)


def smallest_cache(caches: Iterable[CacheRoof], size_bytes: int) -> CacheRoof | None:
    """Return the smallest of `caches` with a known bandwidth that so many bytes fit in; None where there is none."""
    fitting = [cache for cache in caches if cache.size_bytes >= size_bytes]
    return min(fitting, key=lambda cache: cache.size_bytes, default=None)


# Work and rates: how many FLOPs and bytes a case stands for, and how many a second were achieved.
#
# FLOPs count a multiply-add as 2; bytes are the least that must move (each input read once, each
# output written once), so a rate in bytes/s can be below what the memory really carried.


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
    if has_words or len(shape.axes) == 1 or len(shape.axes) > 3:
        return ", ".join(f"{name} = {length:,}" for name, length in shape.axes)
    return " × ".join(f"{length:,}" for length in shape)


def shapes_by_work(results: Sequence[Result]) -> list[Shape]:
    """Return the shapes of `results`, each once, from the least FLOPs and bytes to the most."""
    cases = {result.case.shape: result.case for result in results}
    return sorted(cases, key=lambda shape: (flop_count(cases[shape]), byte_count(cases[shape])))


# The best measured rates of a device, from large matmuls and long streams: a ceiling that short loops cannot measure.
#
# It is a maximum of what was tried, so the true ceiling is at or above it.


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
    return Peak(
        dtype, unit, best_rate(best), "measured_ceiling", f"best large matmul on this device: {case_and_date(best)}"
    )


def measured_bandwidth(device: Device, known: Sequence[Result]) -> Bandwidth | None:
    """Return the best rate of streams through this device's memory among `known`, in bytes/s, or None."""
    found = [result for result in known if is_stream(result) and same_unit(device_of(result), device)]
    if not found:
        return None
    best = max(found, key=best_rate)
    return Bandwidth(best_rate(best), "measured_ceiling", f"best memory stream on this device: {case_and_date(best)}")


def same_units(device: Device, dtype: str) -> bool:
    """Return whether products in `dtype` run on the vector units of `device`, for want of matrix units."""
    matrix = device.peak(dtype, "matrix")
    vector = device.peak(dtype, "vector")
    return matrix is not None and vector is not None and matrix.flop_per_s == vector.flop_per_s


def is_large_product(result: Result) -> bool:
    """Return whether it is a product that only arithmetic limits: every core has work, and memory is fast enough.

    What is unknown about the device limits nothing.
    """
    device = device_of(result)
    tile_flop_count = 2 * 128 * 128 * 2048  # one tile for each core: with fewer, cores have no work
    if device is None or not _is_product(result) or flop_count(result.case) < tile_flop_count * (device.cores or 0):
        return False
    peak = default_peak(result)
    bandwidth = default_bandwidth(result)
    ridge = peak.flop_per_s / bandwidth.bytes_per_s if peak and bandwidth else 0.0
    return result.measurement is not None and flop_count(result.case) >= ridge * byte_count(result.case)


def is_stream(result: Result) -> bool:
    """Return whether memory delivered nearly all of the bytes, and no product was computed meanwhile."""
    if _is_product(result) or result.measurement is None:
        return False
    surely = bytes_from_memory(result)
    from_memory = 0.75  # of the bytes of a stream: STREAM's rule of arrays of four caches
    return surely is not None and surely >= from_memory * byte_count(result.case)


def bytes_from_memory(result: Result) -> int | None:
    """Return the bytes that no cache can have delivered; None when the size of the cache is unknown.

    A cold cache has none of the inputs, though it can keep what is written; a warm one has all that fits.
    """
    device = device_of(result)
    case = result.case
    if device is None or device.cache_bytes is None:
        return None
    total = byte_count(case)
    cached = (
        prod(operation_named(case.operation).output(case.shape)) * dtype_named(case.dtype).itemsize_bytes
        if cache_mode(result) == "cold"
        else total
    )
    return total - min(cached, device.cache_bytes)


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
