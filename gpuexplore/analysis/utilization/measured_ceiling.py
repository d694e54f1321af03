"""The best that was measured on a device: a ceiling that no short loop gives, from large products and long streams.

It is a maximum of what was tried, so the true ceiling is at or above it.
"""

from collections.abc import Iterable, Sequence

from gpuexplore.analysis.roofline.bound import intensity, ridge_point
from gpuexplore.analysis.utilization.plausibility import bytes_from_memory, is_plausible
from gpuexplore.analysis.utilization.rates import byte_count, bytes_per_s, flop_count, flop_per_s, shape_label
from gpuexplore.analysis.utilization.utilization import applicable_peak, arithmetic_of, device_of, known_bandwidth
from gpuexplore.devices.identity import UnitKey, same_unit, unit_key
from gpuexplore.model import Bandwidth, Device, Peak, Result, Unit
from gpuexplore.operations import operation_named

TILE_FLOP_COUNT = 2 * 128 * 128 * 2048  # one tile for each core: with fewer, cores have no work
FROM_MEMORY = 0.75  # of the bytes of a stream: STREAM's rule of arrays of four caches

_Key = tuple[UnitKey, str | None, Unit | None]


def best_of(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the fastest large product of each device, dtype and unit, and the fastest stream of each device."""
    best: dict[_Key, Result] = {}
    for result in results:
        key = _key(result)
        if key is not None and (key not in best or _rate(result) > _rate(best[key])):
            best[key] = result
    return tuple(best.values())


def measured_peak(device: Device, dtype: str, unit: Unit, known: Sequence[Result]) -> Peak | None:
    """Return the best rate of large products in `dtype` on this device among `known`, or None."""
    units = {unit} | ({"matrix", "vector"} if same_units(device, dtype) else set())
    found = [
        one
        for one in known
        if is_large_product(one)
        and same_unit(device_of(one), device)
        and arithmetic_of(one) in {(dtype, unit) for unit in units}
    ]
    if not found:
        return None
    best = max(found, key=_rate)
    return Peak(dtype, unit, _rate(best), "measured_ceiling", f"best large product here: {case_and_date(best)}")


def measured_bandwidth(device: Device, known: Sequence[Result]) -> Bandwidth | None:
    """Return the best rate of streams through this device's memory among `known`, in bytes/s, or None."""
    found = [one for one in known if is_stream(one) and same_unit(device_of(one), device)]
    if not found:
        return None
    best = max(found, key=_rate)
    return Bandwidth(_rate(best), "measured_ceiling", f"best stream through memory here: {case_and_date(best)}")


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
    peak, bandwidth = applicable_peak(result), known_bandwidth(result)
    ridge = ridge_point(peak.flop_per_s, bandwidth.bytes_per_s) if peak and bandwidth else 0.0
    return intensity(result.case) >= ridge and is_plausible(result)


def is_stream(result: Result) -> bool:
    """Return whether memory delivered nearly all of the bytes, and no product was computed meanwhile."""
    if _is_product(result):
        return False
    surely = bytes_from_memory(result)
    return surely is not None and surely >= FROM_MEMORY * byte_count(result.case) and is_plausible(result)


def case_and_date(result: Result) -> str:
    """Return what a reader needs to find a result: operation, shape, implementation, dtype and day."""
    case = result.case
    day = f", {result.environment.started_utc[:10]}" if result.environment else ""
    title = operation_named(case.operation).title
    return f"{title}, {shape_label(case.shape)}, {case.implementation} in {case.dtype}{day}"


def _key(result: Result) -> _Key | None:
    device = device_of(result)
    if device is None:
        return None
    if is_large_product(result):
        return (unit_key(device), *arithmetic_of(result))
    return (unit_key(device), None, None) if is_stream(result) else None


def _is_product(result: Result) -> bool:
    return operation_named(result.case.operation).is_matrix_product


def _rate(result: Result) -> float:
    """Return FLOP/s of a product, bytes/s of a stream."""
    return (flop_per_s(result) if _is_product(result) else bytes_per_s(result)) or 0.0
