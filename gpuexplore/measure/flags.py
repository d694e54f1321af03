"""Conditions that limit how far a number can be trusted, each with its evidence.

A measured ceiling that a result exceeds was measured on a disturbed machine: it is measured again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from gpuexplore.core import (
    ONE_SAMPLE,
    CacheRoof,
    Case,
    Device,
    Environment,
    Flag,
    Measurement,
    Peak,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    format_seconds,
)
from gpuexplore.core.dtypes import DType
from gpuexplore.hardware import CpuLoss, ensure_ceiling
from gpuexplore.measure.candidates.candidate import Candidate, cache_mode, flush_bytes
from gpuexplore.measure.check.group import array_bytes
from gpuexplore.measure.conditions.isolation import contention, is_slow
from gpuexplore.operations.contract import Operation

ATTEMPTS = 3
_STILL_EXCEEDED: set[tuple[str, int | None]] = set()  # devices and threads for which measuring again changed nothing

DRIFTED_BY = 1.1  # benchmarks/README.md: the difference of two probes of a quiet machine
LEAK_BYTES = 2**25  # memory that libraries may allocate once, for their own buffers
FAR_ABOVE = 1.2  # times a rated peak: more than boards boost
FAR_ABOVE_A_CEILING = (
    1.25  # times a measured ceiling, which is measured again when exceeded: clocks fall, other work uses cores
)


@dataclass(frozen=True)
class MeasuredCase:
    """A measurement, the conditions it was taken under, and what its result is judged by, each looked up once.

    Attributes:
        case: what was measured.
        measurement: its samples.
        environment: the device and its state before and after.
        operation: of the case.
        dtype: of the case.
        overhead_s: seconds of a call on one element; None when it was not measured.
        losses: what others took of the CPU meanwhile, by window; empty where not observed.
        grown_bytes: by which the process grew during the samples.
        core_speeds: of the slowest core after each round, of its usual rate; empty where not observed.
        has_busy_idle_threads: whether threads of this process kept a core busy while idle.
        waited_share: of the rounds, in which it waited for a core in use by others; None is unknown.
        weakness: the inputs other than the timed ones on which a user's implementation is wrong; None: none is known.
        cores: that its calls kept busy; None is unknown.
    """

    case: Case
    measurement: Measurement
    environment: Environment
    operation: Operation
    dtype: DType
    overhead_s: float | None = None
    losses: tuple[CpuLoss, ...] = ()
    grown_bytes: int = 0
    core_speeds: tuple[float, ...] = ()
    has_busy_idle_threads: bool = False
    waited_share: float | None = None
    weakness: str | None = None
    cores: float | None = None

    @cached_property
    def flop_per_s(self) -> float:
        """The rate of arithmetic."""
        return self.operation.flop_count(self.case.shape) / self.measurement.median_s

    @cached_property
    def peak(self) -> Peak | None:
        """The peak of the implementation on this device; None is unknown."""
        implementation = self.operation.implementation_named(self.case.implementation)
        return implementation.peak(self.environment.device, self.dtype.name)


def find_flags(measured: MeasuredCase) -> tuple[Flag, ...]:
    """Return every flag that applies to a measurement."""
    case = measured.case
    measurement = measured.measurement
    environment = measured.environment
    busy = "threads of this process kept a core busy while idle"
    found = (
        _cache(case, environment.device),
        _noisy(measurement),
        Flag("contended", busy)
        if measured.has_busy_idle_threads
        else contention(environment, measured.losses, measured.waited_share),
        _throttled(environment),
        _drifted(environment, measured.core_speeds),
        _emulated(measured.dtype, environment.device) if measured.flop_per_s else None,
        _over_peak(measured),
        _over_physical_peak(measured),
        _launch_bound(measurement, measured.overhead_s),
        _leaks(measured),
        Flag("fragile", measured.weakness) if measured.weakness else None,
        _extra_threads(case, measured.cores),
    )
    return tuple(flag for flag in found if flag)


def _extra_threads(case: Case, cores: float | None) -> Flag | None:
    """Return the flag of calls that keep more cores busy than the threads that were asked for."""
    threads = case.options.threads
    inexact = 0.3  # cores: by which the clocks of both are off at most
    if threads is None or cores is None or cores <= threads + inexact:
        return None
    asked = "one thread was" if threads == 1 else f"{threads} threads were"
    return Flag("extra_threads", f"its calls kept {cores:.1f} cores busy where {asked} asked for")


def _cache(case: Case, device: Device) -> Flag:
    if cache_mode(case, device) == "warm":
        return Flag("warm", "called repeatedly on the same data, which stays in any cache it fits in")
    assumed = "" if device.cache_bytes else ": assumed to be enough, the size of the last-level cache is unknown"
    read = ", and as many other bytes read" if device.kind != "cpu" else ""
    return Flag("cold", f"{format_bytes(flush_bytes(device))} overwritten before each call{read}{assumed}")


def condition_flags(measurement: Measurement, environment: Environment, loss: CpuLoss) -> tuple[Flag, ...]:
    """Return the flags that need no operation: of one sample, noisy, throttled, and what is known of others."""
    single = Flag("one_sample", ONE_SAMPLE) if measurement.is_single else None
    found = (single, _noisy(measurement), contention(environment, [loss]), _throttled(environment))
    return tuple(flag for flag in found if flag)


def _noisy(measurement: Measurement) -> Flag | None:
    share = measurement.iqr_s / measurement.median_s
    if share <= 0.1:
        return None
    return Flag("noisy", f"the middle half of the samples spreads over {format_percent(share)} of the median", share)


def _throttled(environment: Environment) -> Flag | None:
    reasons = environment.after.throttle_reasons
    if reasons:
        return Flag("throttled", f"the driver reports: {', '.join(reasons)}")
    boost_hz = environment.device.clock_hz
    held_hz = environment.after.clock_hz
    if environment.device.kind == "cpu" or not boost_hz or not held_hz or held_hz >= 0.75 * boost_hz:
        return None
    slower = boost_hz / held_hz - 1
    return Flag("throttled", f"the clock fell to {format_percent(held_hz / boost_hz)} of the boost clock", slower)


def _drifted(environment: Environment, core_speeds: Sequence[float]) -> Flag | None:
    """Return the flag of cores that were slow in many rounds, or of one that ran otherwise after the samples."""
    slow = [share for share in core_speeds if is_slow(share)]
    longer = sum(1 / share - 1 for share in slow if share)
    if len(slow) > 0.2 * len(core_speeds):  # fewer hardly move a median
        rates = " to ".join(dict.fromkeys(map(format_percent, (min(slow), max(slow)))))
        return Flag(
            "drifted",
            f"in {len(slow)} of {len(core_speeds)} rounds a core ran a loop of multiply-adds at {rates} of its usual "
            "rate: the clock was lower, or another program used the same core",
            longer / len(core_speeds),
        )
    before = environment.before.probe_flop_per_s
    after = environment.after.probe_flop_per_s
    if not before or not after:
        return None
    change = max(before, after) / min(before, after)
    if change <= DRIFTED_BY:
        return _slower_than_its_peak(max(before, after), environment.device)
    share = format_percent(after / before)
    return Flag(
        "drifted",
        f"the same loop of multiply-adds ran at {share} of the rate after the samples: the clock changed, or "
        "another program on the core started or ended",
        change - 1,
    )


def share_of_peak(flop_per_s: float, device: Device) -> float | None:
    """Return the rate of a core in the clock probe's loop over its measured peak on one thread; None is unknown."""
    roofs = device if device.cores == 1 else device.one_thread
    peak = roofs.peak("fp32", "vector") if roofs else None
    return flop_per_s / peak.flop_per_s if peak and peak.kind == "measured_ceiling" else None


def _slower_than_its_peak(flop_per_s: float, device: Device) -> Flag | None:
    """Return the flag of a core that was always slower than when its peaks were measured."""
    share = share_of_peak(flop_per_s, device)
    if share is None or not is_slow(share):
        return None
    evidence = f"a core ran a loop of multiply-adds at {format_percent(share)} of its measured peak on one thread"
    return Flag("drifted", evidence, 1 / share - 1)


def _emulated(dtype: DType, device: Device) -> Flag | None:
    if not device.native or dtype.name in device.native:  # where nothing states the units, none is known to lack
        return None
    return Flag("emulated", f"{device.name} has no {dtype.name} units: the arithmetic is done in another format")


def _over_peak(measured: MeasuredCase) -> Flag | None:
    peak = measured.peak
    flop_per_s = measured.flop_per_s
    if peak is None or flop_per_s <= peak.flop_per_s:
        return None
    is_measured = peak.kind == "measured_ceiling"
    likelier = "the peak is too low" if is_measured else "the device runs above its rated clock"
    far_off = flop_per_s > (FAR_ABOVE_A_CEILING if is_measured else FAR_ABOVE) * peak.flop_per_s
    return Flag(
        "over_peak",
        f"{format_flop_per_s(flop_per_s)} is above the peak of {format_flop_per_s(peak.flop_per_s)} ({peak.source}); "
        f"most likely {'the measurement is wrong' if far_off else likelier}",
    )


def _over_physical_peak(measured: MeasuredCase) -> Flag | None:
    """Return the flag of a rate that a CPU cannot reach, whatever its clock: work was not done, or not timed."""
    peak = measured.peak
    flop_per_s = measured.flop_per_s
    if peak and peak.kind == "measured_ceiling" and flop_per_s > FAR_ABOVE_A_CEILING * peak.flop_per_s:
        evidence = f"{format_flop_per_s(flop_per_s)}, but the measured ceiling is {format_flop_per_s(peak.flop_per_s)}"
        return Flag("over_physical_peak", f"{evidence} ({peak.source}): part of the work was not done, or not timed")
    roof = fastest_cache(measured.environment.device)
    byte_count = measured.operation.byte_count(measured.case.shape, measured.dtype)
    bytes_per_s = byte_count / measured.measurement.median_s
    if roof and bytes_per_s > FAR_ABOVE_A_CEILING * roof.bandwidth.bytes_per_s:
        most = format_bytes_per_s(roof.bandwidth.bytes_per_s)
        evidence = f"{format_bytes_per_s(bytes_per_s)}, but the fastest cache delivers {most}"
        return Flag("over_physical_peak", f"{evidence}: part of the work was not done, or not timed")
    return None


def fastest_cache(device: Device) -> CacheRoof | None:
    """Return the fastest cache of `device`; None where none was measured."""
    return max(device.caches, key=lambda cache: cache.bandwidth.bytes_per_s, default=None)


def _leaks(measured: MeasuredCase) -> Flag | None:
    """Return the flag of a process that grew by more than twice the memory a call could keep for the next one."""
    arrays_bytes = array_bytes(measured.operation, measured.case.shape, measured.dtype.itemsize_bytes)
    if measured.grown_bytes <= LEAK_BYTES + 2 * arrays_bytes:
        return None
    return Flag("leaks", f"the process grew by {format_bytes(measured.grown_bytes)} during the samples")


def _launch_bound(measurement: Measurement, overhead_s: float | None) -> Flag | None:
    if overhead_s is None or measurement.median_s >= 3 * overhead_s:
        return None
    return Flag("launch_bound", f"a call on one element already takes {format_seconds(overhead_s)}")


# Measured ceilings, measured again where a result exceeds them.


def with_fair_ceiling(device: Device, candidate: Candidate, operation: Operation, measurement: Measurement) -> Device:
    """Return the candidate's `device`, its ceiling measured again while `measurement` is above it."""
    case = candidate.case
    implementation = operation.implementation_named(case.implementation)
    flop_per_s = operation.flop_count(case.shape) / measurement.median_s
    threads = case.options.threads

    def is_computed_faster(device: Device) -> bool:
        peak = implementation.peak(device, case.dtype)
        return peak is not None and peak.kind == "measured_ceiling" and flop_per_s > peak.flop_per_s

    device = _measured_while(is_computed_faster, device, threads, ATTEMPTS)
    byte_count = operation.byte_count(case.shape, candidate.dtype)
    alone = threads == 1 or operation.uses_one_thread(case.implementation, case.dtype, case.shape)
    is_moved_faster = partial(_is_moved_faster, byte_count, byte_count / measurement.median_s, alone)
    if (device.id, threads) in _STILL_EXCEEDED or not is_moved_faster(device):
        return device
    device = _measured_while(is_moved_faster, device, threads, 1)
    if is_moved_faster(device):
        _STILL_EXCEEDED.add((device.id, threads))
    return device


def _measured_while(is_exceeded: Callable[[Device], bool], device: Device, threads: int | None, most: int) -> Device:
    for _ in range(most):
        if not is_exceeded(device):
            break
        device = ensure_ceiling(device, threads, again=True)
    return device


def _is_moved_faster(byte_count: float, bytes_per_s: float, alone: bool, device: Device) -> bool:
    """Return whether bytes moved faster than the fastest level that they fit into, by the bandwidths measured here."""
    roofs = device.one_thread if alone and device.one_thread else device
    # reading more than twice its size in a loop leaves next to nothing in a cache
    fitting = [cache.bandwidth for cache in roofs.caches if byte_count <= 2 * cache.size_bytes]
    behind = [roofs.bandwidth] if roofs.bandwidth else []
    measured = [roof.bytes_per_s for roof in (*fitting, *behind) if roof.kind == "measured_ceiling"]
    return bool(measured) and bytes_per_s > 1.1 * max(measured)  # the mix of loads and stores is not the triad's
