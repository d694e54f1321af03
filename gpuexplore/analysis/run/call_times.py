"""About how long a call takes, before it is made: from this device's runs, else recorded ones, else its peaks.

Results count where they were computed by the same arithmetic: bf16 that is widened to fp32 says nothing of bf16 units.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log

from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.model import Case, Device, Result
from gpuexplore.core.once import once
from gpuexplore.core.statistics import median
from gpuexplore.measure.check.guard import work
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recordings

Key = tuple[str, str, str, str]  # operation, implementation, dtype of the arrays and of the arithmetic
Points = tuple[tuple[float, float], ...]  # work and seconds, ascending

LEAST_CALL_S = 2e-6


def call_times(device: Device, measured: Iterable[Result] = ()) -> Callable[[Case], float]:
    """Return the function that estimates the seconds a call of a case takes on a device.

    Args:
        device: with its peaks and native formats.
        measured: results of any device that count for this one: its own.
    """
    own = _points(measured)

    def call_s(case: Case) -> float:
        key = _key(case, device)
        if found := own.get(key) or _recorded_for(device).get(key):
            return _at(found, _work(case))
        return _by_kin(case, key, {**_recorded_for(device), **own}) or _by_peak(case, device)

    return call_s


def _by_kin(case: Case, key: Key, known: Mapping[Key, Points]) -> float | None:
    """Return what other operations of this kind take for as much work by the same code; None: none is known."""
    product = operation_named(case.operation).is_matrix_product
    kin = [
        _at(points, _work(case))
        for other, points in known.items()
        if other[1:] == key[1:] and operation_named(other[0]).is_matrix_product == product
    ]
    return median(kin) if kin else None


def _by_peak(case: Case, device: Device) -> float:
    implementation = operation_named(case.operation).implementation_named(case.implementation)
    peak = implementation.peak(device, case.dtype)
    unknown = 1e10 if device.kind == "cpu" else 1e12  # FLOP/s without a measured peak
    share_of_peak = 0.1  # of code without a measurement
    rate = share_of_peak * peak.flop_per_s if peak else unknown
    slow_flop_per_s = {("numpy", "fp16"): 5e8, ("torch", "fp16"): 3e9}  # without fp16 units, as recorded on Zen 3
    if device.kind == "cpu" and case.dtype not in device.native:
        rate = min(rate, slow_flop_per_s.get((case.implementation, case.dtype), rate))
    return max(LEAST_CALL_S, _work(case) / rate)


def _recorded_for(device: Device) -> Mapping[Key, Points]:
    return _recorded() if device.kind == "cpu" else {}


@once
def _recorded() -> dict[Key, Points]:
    """Return what the recordings of CPUs contain."""
    return _points(result for recording in recordings() for result in recording.results if result.case.device == "cpu")


def _points(results: Iterable[Result]) -> dict[Key, Points]:
    found: dict[Key, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result.measurement and result.environment and result.case.operation:
            key = _key(result.case, result.environment.device)
            found[key][_work(result.case)].append(result.measurement.median_s)
    return {key: tuple(sorted((at, median(times)) for at, times in by.items())) for key, by in found.items()}


def _key(case: Case, device: Device) -> Key:
    implementation = operation_named(case.operation).implementation_named(case.implementation)
    arithmetic, _ = implementation.computes_in(case.dtype, device)
    native = "native" if dtype_named(arithmetic).name in device.native else "emulated"
    return case.operation, case.implementation, case.dtype, f"{arithmetic} {native}"


def _work(case: Case) -> float:
    return float(work(operation_named(case.operation), case.shape))


def _at(points: Sequence[tuple[float, float]], wanted: float) -> float:
    """Return the seconds of `wanted` work: between neighbours along the line of logarithms, beyond the last by work."""
    above = next((index for index, (at, _) in enumerate(points) if at >= wanted), None)
    if above is None:
        at, seconds = points[-1]
        return seconds * wanted / at
    if above == 0:
        at, seconds = points[0]
        return max(min(seconds, LEAST_CALL_S), seconds * wanted / at)
    (low, low_s), (high, high_s) = points[above - 1 : above + 1]
    share = log(wanted / low) / log(high / low)
    return exp(log(low_s) + share * (log(high_s) - log(low_s)))
