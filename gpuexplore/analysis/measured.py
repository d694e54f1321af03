"""The best that was measured on a device: a ceiling that no short loop gives, from large products and long streams.

It is a maximum of what was tried, so the true ceiling is at or above it.
"""

from collections.abc import Iterable, Sequence

from gpuexplore.analysis.mfu import arithmetic_of, device_of
from gpuexplore.analysis.rates import byte_count, bytes_per_s, flop_count, flop_per_s, shape_label
from gpuexplore.model import Bandwidth, Device, Peak, Result, Unit
from gpuexplore.operations import operation_named

LARGE_FLOP_COUNT = 10**10  # a product of 2,048: 256 tiles of 128 x 128, more than any GPU has multiprocessors
CACHES_FULL = 4  # bytes moved over those of the last-level cache, so that it can deliver little of them

_Key = tuple[str, str | None, str | None, Unit | None]


def best_of(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the fastest large product of each device, dtype and unit, and the fastest stream of each device."""
    best: dict[_Key, Result] = {}
    for one in results:
        key = _key(one)
        if key is not None and (key not in best or _rate(one) > _rate(best[key])):
            best[key] = one
    return tuple(best.values())


def measured_peak(device: Device, dtype: str, unit: Unit, known: Sequence[Result]) -> Peak | None:
    """Return the best rate of large products in `dtype` on this device among `known`, or None."""
    units = {unit} | ({"matrix", "vector"} if same_units(device, dtype) else set())
    found = [
        one
        for one in known
        if _is_large_product(one) and _is_on(one, device) and arithmetic_of(one) in {(dtype, unit) for unit in units}
    ]
    if not found:
        return None
    best = max(found, key=_rate)
    return Peak(dtype, unit, _rate(best), "measured_ceiling", f"best large product here: {_told(best)}")


def measured_bandwidth(device: Device, known: Sequence[Result]) -> Bandwidth | None:
    """Return the best rate of streams through this device's memory among `known`, in bytes/s, or None."""
    found = [one for one in known if _is_stream(one) and _is_on(one, device)]
    if not found:
        return None
    best = max(found, key=_rate)
    return Bandwidth(_rate(best), "measured_ceiling", f"best stream through memory here: {_told(best)}")


def same_units(device: Device, dtype: str) -> bool:
    """Return whether products in `dtype` run on the vector units of `device`, for want of matrix units."""
    matrix, vector = device.peak(dtype, "matrix"), device.peak(dtype, "vector")
    return matrix is not None and vector is not None and matrix.flop_per_s == vector.flop_per_s


def _key(result: Result) -> _Key | None:
    device = device_of(result)
    if device is None:
        return None
    if _is_large_product(result):
        return (device.name, device.uuid, *arithmetic_of(result))
    return (device.name, device.uuid, None, None) if _is_stream(result) else None


def _is_large_product(result: Result) -> bool:
    product = operation_named(result.case.operation).is_matrix_product
    return product and result.measurement is not None and flop_count(result.case) >= LARGE_FLOP_COUNT


def _is_stream(result: Result) -> bool:
    device = device_of(result)
    if device is None or device.cache_bytes is None or result.measurement is None:
        return False
    product = operation_named(result.case.operation).is_matrix_product
    return not product and byte_count(result.case) >= CACHES_FULL * device.cache_bytes


def _is_on(result: Result, device: Device) -> bool:
    its = device_of(result)
    return its is not None and its.name == device.name and (its.uuid == device.uuid or not (its.uuid and device.uuid))


def _rate(result: Result) -> float:
    """Return FLOP/s of a product, bytes/s of a stream."""
    product = operation_named(result.case.operation).is_matrix_product
    return (flop_per_s(result) if product else bytes_per_s(result)) or 0.0


def _told(result: Result) -> str:
    case, environment = result.case, result.environment
    day = f", {environment.started_utc[:10]}" if environment else ""
    return f"{case.operation} of {shape_label(case.shape)} in {case.dtype} by {case.implementation}{day}"
