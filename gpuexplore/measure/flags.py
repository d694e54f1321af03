"""Conditions that limit how far a number can be trusted, each with its evidence."""

from dataclasses import dataclass

from gpuexplore.dtypes import DType
from gpuexplore.measure.candidate import cache_mode, flush_bytes
from gpuexplore.model import Case, Device, Environment, Flag, Measurement
from gpuexplore.operations.contract import Implementation, Operation
from gpuexplore.units import format_bytes, format_flop_per_s, format_percent, format_seconds

NOISY_ABOVE = 0.10
LAUNCH_BOUND_BELOW = 3.0
THROTTLED_BELOW = 0.75
FAR_ABOVE = 1.2  # times a rated peak: more than boards boost
FAR_ABOVE_A_CEILING = 2.0  # a loop of ours, measured again when it is passed, can miss the most, though not by half


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement and the conditions it was taken under.

    Attributes:
        case: what was measured.
        measurement: its samples.
        environment: the device and its state before and after.
        overhead_s: seconds of a call on one element; None when it was not measured.
        lost_cpu_share: share of the CPU that others took meanwhile; None when unknown.
    """

    case: Case
    measurement: Measurement
    environment: Environment
    overhead_s: float | None
    lost_cpu_share: float | None


def find_flags(measured: Measured, operation: Operation, dtype: DType) -> tuple[Flag, ...]:
    """Return every flag that applies to this measurement of `operation` in `dtype`."""
    case, measurement, environment = measured.case, measured.measurement, measured.environment
    device, implementation = environment.device, operation.implementation_named(case.implementation)
    flop_count = operation.flop_count(case.shape)
    found = (
        _cache(case, device),
        _noisy(measurement),
        _contended(environment, measured.lost_cpu_share),
        _throttled(environment),
        _emulated(dtype, device) if flop_count else None,
        _over_peak(flop_count / measurement.median_s, implementation, dtype, device),
        _launch_bound(measurement, measured.overhead_s),
    )
    return tuple(flag for flag in found if flag)


def _cache(case: Case, device: Device) -> Flag:
    if cache_mode(case, device) == "warm":
        return Flag("warm", "called again and again on the same data, which stays in the caches it fits in")
    assumed = "" if device.cache_bytes else ": assumed to be enough, the size of the last-level cache is unknown"
    return Flag("cold", f"{format_bytes(flush_bytes(device))} overwritten before each call{assumed}")


def condition_flags(
    measurement: Measurement, environment: Environment, lost_cpu_share: float | None
) -> tuple[Flag, ...]:
    """Return the flags that need no operation: noisy, contended and throttled."""
    found = (_noisy(measurement), _contended(environment, lost_cpu_share), _throttled(environment))
    return tuple(flag for flag in found if flag)


def _noisy(measurement: Measurement) -> Flag | None:
    share = measurement.iqr_s / measurement.median_s
    if share <= NOISY_ABOVE:
        return None
    return Flag("noisy", f"the middle half of the samples spreads over {format_percent(share)} of the median")


def _contended(environment: Environment, lost_cpu_share: float | None) -> Flag | None:
    others = environment.after.foreign_processes
    if others:
        return Flag("contended", f"{others} other process{'es' if others > 1 else ''} used {environment.device.id}")
    if lost_cpu_share is not None and lost_cpu_share > NOISY_ABOVE:
        return Flag("contended", f"other work took {format_percent(lost_cpu_share)} of the CPU meanwhile")
    return None


def _throttled(environment: Environment) -> Flag | None:
    reasons = environment.after.throttle_reasons
    if reasons:
        return Flag("throttled", f"the driver reports: {', '.join(reasons)}")
    boost_hz, held_hz = environment.device.clock_hz, environment.after.clock_hz
    if environment.device.kind == "cpu" or not boost_hz or not held_hz or held_hz >= THROTTLED_BELOW * boost_hz:
        return None
    return Flag("throttled", f"the clock fell to {format_percent(held_hz / boost_hz)} of the boost clock")


def _emulated(dtype: DType, device: Device) -> Flag | None:
    if dtype.name in device.native:
        return None
    return Flag("emulated", f"{device.name} has no {dtype.name} units: another format does the arithmetic")


def _over_peak(flop_per_s: float, implementation: Implementation, dtype: DType, device: Device) -> Flag | None:
    peak = implementation.peak(device, dtype.name)
    if peak is None or flop_per_s <= peak.flop_per_s:
        return None
    is_measured = peak.kind == "measured_ceiling"
    likelier = "the peak is too low" if is_measured else "the device runs past its printed clock"
    far_off = flop_per_s > (FAR_ABOVE_A_CEILING if is_measured else FAR_ABOVE) * peak.flop_per_s
    return Flag(
        "over_peak",
        f"{format_flop_per_s(flop_per_s)} is above the peak of {format_flop_per_s(peak.flop_per_s)} ({peak.source}); "
        f"likelier {'the measurement is wrong' if far_off else likelier}",
    )


def _launch_bound(measurement: Measurement, overhead_s: float | None) -> Flag | None:
    if overhead_s is None or measurement.median_s >= LAUNCH_BOUND_BELOW * overhead_s:
        return None
    return Flag("launch_bound", f"a call on one element already takes {format_seconds(overhead_s)}")
