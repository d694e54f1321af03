"""The roofs of a device: every limit it has, what was reached below them, and the ridge points where they meet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from gpuexplore.analysis.model import Bound, ImplementationLimits
from gpuexplore.analysis.utilization.best_results import best_of
from gpuexplore.analysis.utilization.measured_ceiling import best_rate, case_and_date, is_large_product
from gpuexplore.analysis.utilization.utilization import (
    arithmetic_of,
    byte_count,
    device_of,
    flop_count,
    has_nominal_flops,
    is_cache_resident,
)
from gpuexplore.devices.identity import same_device
from gpuexplore.model import Case, Device, PeakKind, Result, Unit

# The roofline: attainable FLOP/s = min(peak, intensity · bandwidth), and which side a result is on.
#
# S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
# multicore architectures", CACM 52(4), 2009, https://doi.org/10.1145/1498765.1498785.


def intensity(case: Case) -> float:
    """Return the arithmetic intensity in FLOP/byte, with each array moved once."""
    return flop_count(case) / byte_count(case)


def ridge_point(flop_per_s: float, bytes_per_s: float) -> float:
    """Return the intensity in FLOP/byte from which a peak of `flop_per_s` can be reached."""
    return flop_per_s / bytes_per_s


def attainable_flop_per_s(flop_per_byte: float, flop_per_s: float, bytes_per_s: float) -> float:
    """Return the roof in FLOP/s above an intensity of `flop_per_byte`."""
    return min(flop_per_s, flop_per_byte * bytes_per_s)


def bound_of(result: Result, limits: ImplementationLimits) -> Bound | None:
    """Return what limits this result at best; None without a time, or when a peak that decides it is unknown.

    That is so, too, where FLOPs that are a convention would make it `compute`.

    Without FLOPs no peak decides. `overhead`: its time is near the cost of a call. `compute`: its intensity is at the
    ridge or above, that of the cache its data stay in where its bandwidth is known, else that of memory. Below
    `memory`, or `cache`.
    """
    if result.measurement is None:
        return None
    if any(flag.name == "launch_bound" for flag in result.flags):
        return "overhead"
    peak, slope = limits.peak, limits.serving or limits.memory
    if slope is None or (peak is None and flop_count(result.case)):
        return None
    if peak and intensity(result.case) >= ridge_point(peak.flop_per_s, slope.bytes_per_s):
        return None if has_nominal_flops(result.case) else "compute"
    return "cache" if is_cache_resident(result) else "memory"


RoofKind = Literal["compute", "memory", "cache"]


@dataclass(frozen=True, slots=True)
class Roof:
    """One rate that a device cannot pass, or the best that was reached on it so far.

    Attributes:
        label: what readers call it, e.g. ``fp32, matrix units``, ``Memory``, ``L2 cache``.
        rate: FLOP/s of a compute roof, bytes/s of the others.
        peak_kind: how it was found.
        source: who says so, or which case reached it and when.
        reached: the best result so far: a limit is above it.
        dtype: of a compute roof, as its unit.
        size_bytes: of a cache, for all threads together.
    """

    kind: RoofKind
    label: str
    rate: float
    peak_kind: PeakKind
    source: str
    reached: bool = False
    dtype: str | None = None
    unit: Unit | None = None
    size_bytes: int | None = None

    @property
    def measured(self) -> bool:
        """Whether it was measured on a device like this one, not printed or computed."""
        return self.peak_kind == "measured_ceiling"


@dataclass(frozen=True, slots=True)
class Ridge:
    """The intensity in FLOP/byte from which a compute roof, not a bandwidth, is the limit."""

    compute: Roof
    bandwidth: Roof
    intensity: float


def roofs(device: Device, measured: Iterable[Result] = (), recorded: Iterable[Result] = ()) -> tuple[Roof, ...]:
    """Return the compute roofs of every dtype and unit, those of the caches and of memory, then what was reached.

    Args:
        measured: results of any devices; the best on this one become roofs with their case and date.
        recorded: the same from elsewhere; a roof of theirs says so.
    """
    reached = [
        (result, f"{prefix}{case_and_date(result)}")
        for prefix, results in (("", measured), ("recorded: ", recorded))
        for result in best_of(result for result in results if same_device(device_of(result), device))
    ]
    return (*_limits(device), *_best_by_kind(reached))


def ridges(all_roofs: Sequence[Roof]) -> tuple[Ridge, ...]:
    """Return the ridge point of every compute limit with every bandwidth limit."""
    limits = [roof for roof in all_roofs if not roof.reached]
    compute = [limit for limit in limits if limit.kind == "compute"]
    bandwidths = [limit for limit in limits if limit.kind != "compute"]
    return tuple(Ridge(high, slope, ridge_point(high.rate, slope.rate)) for high, slope in product(compute, bandwidths))


def compute_roof(all_roofs: Iterable[Roof], dtype: str, unit: Unit) -> Roof | None:
    """Return the limit of one dtype on one unit; None where it is unknown."""
    limits = (roof for roof in all_roofs if not roof.reached)
    return next((limit for limit in limits if (limit.dtype, limit.unit) == (dtype, unit)), None)


def memory_roof(all_roofs: Iterable[Roof]) -> Roof | None:
    """Return the limit of memory; None where it is unknown."""
    return next((roof for roof in all_roofs if roof.kind == "memory" and not roof.reached), None)


def _limits(device: Device) -> tuple[Roof, ...]:
    compute = [
        Roof(
            "compute",
            _units(peak.dtype, peak.unit),
            peak.flop_per_s,
            peak.kind,
            peak.source,
            dtype=peak.dtype,
            unit=peak.unit,
        )
        for peak in device.peaks
    ]
    caches = [
        Roof(
            "cache",
            f"L{cache.level} cache",
            size_bytes=cache.size_bytes,
            rate=cache.bandwidth.bytes_per_s,
            peak_kind=cache.bandwidth.kind,
            source=cache.bandwidth.source,
        )
        for cache in device.caches
    ]
    memory = device.bandwidth
    slope = [Roof("memory", "Memory", memory.bytes_per_s, memory.kind, memory.source)] if memory else []
    return (*compute, *caches, *slope)


def _units(dtype: str, unit: Unit) -> str:
    return f"{dtype}, {unit} units"


def _best_by_kind(reached: Iterable[tuple[Result, str]]) -> tuple[Roof, ...]:
    """Return a roof for the best product in each dtype and unit, and for the best stream, each with its source."""
    best: dict[tuple[str, Unit] | None, tuple[float, str]] = {}
    for result, source in reached:
        kind = arithmetic_of(result) if is_large_product(result) else None
        best[kind] = max(best.get(kind, (0.0, "")), (best_rate(result), source))
    return tuple(_reached(kind, rate, source) for kind, (rate, source) in best.items())


def _reached(kind: tuple[str, Unit] | None, rate: float, source: str) -> Roof:
    if kind is None:
        return Roof("memory", "best memory rate", rate, "measured_ceiling", source, reached=True)
    dtype, unit = kind
    label = f"best matmul in {_units(dtype, unit)}"
    return Roof("compute", label, rate, "measured_ceiling", source, reached=True, dtype=dtype, unit=unit)
