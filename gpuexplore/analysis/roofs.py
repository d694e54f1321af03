"""The roofs of a device, the ridge points where they meet, what a result can reach of them, and how to measure them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, log2
from typing import Literal

from gpuexplore.analysis.utilization import (
    arithmetic_of,
    best_of,
    best_rate,
    case_and_date,
    device_of,
    is_large_product,
)
from gpuexplore.core.model import (
    Device,
    Experiment,
    Options,
    PeakKind,
    Result,
    Unit,
)
from gpuexplore.hardware import ASSUMED_CACHE_BYTES, CACHES_OVERFLOWN, same_device
from gpuexplore.operations import Operation, operation_named

# The roofline: attainable FLOP/s = min(peak, intensity · bandwidth), and which side a result is on.
#
# S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
# multicore architectures", CACM 52(4), 2009, https://doi.org/10.1145/1498765.1498785.


def ridge_point(flop_per_s: float, bytes_per_s: float) -> float:
    """Return the intensity in FLOP/byte from which a peak of `flop_per_s` can be reached."""
    return flop_per_s / bytes_per_s


def attainable_flop_per_s(flop_per_byte: float, flop_per_s: float, bytes_per_s: float) -> float:
    """Return the roof in FLOP/s above an intensity of `flop_per_byte`."""
    return min(flop_per_s, flop_per_byte * bytes_per_s)


RoofKind = Literal["compute", "memory", "cache"]


@dataclass(frozen=True, slots=True)
class Roof:
    """One rate that a device cannot pass, or the best that was reached on it so far.

    Attributes:
        label: what readers call it, e.g. ``fp32, matrix units``, ``Memory``, ``L2 cache``.
        rate: FLOP/s of a compute roof, bytes/s of the others.
        peak_kind: how it was found.
        source: who says so, or which case reached it and when.
        rate_note: ``at the fp32 rate`` where the dtype has no units of its own.
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
    rate_note: str = ""

    @property
    def measured(self) -> bool:
        """True if measured on such a device, false if from a datasheet or computed."""
        return self.peak_kind == "measured_ceiling"


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


def ridges(all_roofs: Sequence[Roof]) -> dict[tuple[Roof, Roof], float]:
    """Return the intensity in FLOP/byte from which each compute limit decides, and not each bandwidth limit."""
    limits = [roof for roof in all_roofs if not roof.reached]
    compute = [limit for limit in limits if limit.kind == "compute"]
    bandwidths = [limit for limit in limits if limit.kind != "compute"]
    return {(high, slope): ridge_point(high.rate, slope.rate) for high, slope in product(compute, bandwidths)}


def memory_ridges(all_roofs: Sequence[Roof]) -> dict[Roof, float]:
    """Return the intensity in FLOP/byte from which each compute limit decides, and not memory."""
    return {high: found for (high, slope), found in ridges(all_roofs).items() if slope.kind == "memory"}


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
            ", ".join(filter(None, (_units(peak.dtype, peak.unit), peak.rate_note))),
            peak.flop_per_s,
            peak.kind,
            peak.source,
            dtype=peak.dtype,
            unit=peak.unit,
            rate_note=peak.rate_note,
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


# The experiments that measure the roofs of a device: large matmuls, and a triad over more than its caches.


def roof_experiments(device: Device) -> tuple[Experiment, Experiment]:
    """Return the large products and the triad that show what `device` reaches, by what is usual on it."""
    usual = ("fp32", "bf16", "fp16")
    own = tuple(dtype for dtype in usual if dtype in device.native)  # others would show another dtype's roof
    return (
        _experiment(operation_named("matmul"), device, size=_product_size(device), dtypes=own or usual[:1]),
        _experiment(operation_named("triad"), device, size=_triad_size(device), dtypes=("fp32",)),
    )


def _experiment(operation: Operation, device: Device, *, size: int, dtypes: tuple[str, ...]) -> Experiment:
    fitting = tuple(implementation.name for implementation in operation.usual if implementation.runs_on(device))
    shape = operation.shape_of_size(size)
    return Experiment(operation.name, (shape,), dtypes, fitting, (device.id,), Options(budget_s=0.3))


def _product_size(device: Device) -> int:
    """Return the largest power of two whose product takes about a tenth of a second at the fp32 peak."""
    peak = device.peak("fp32", "matrix")
    smallest = 1024
    if peak is None:
        return smallest
    longest_s = 0.1  # at the fp32 peak: a few seconds for everything
    longest = log2(peak.flop_per_s * longest_s / 2) / 3
    largest = 8192
    return max(smallest, min(largest, 1 << int(longest)))


def _triad_size(device: Device) -> int:
    """Return a power of two whose three fp32 arrays overflow the caches and take long enough, within the memory."""
    least = CACHES_OVERFLOWN * (device.cache_bytes or ASSUMED_CACHE_BYTES)
    shortest_s = 2e-4  # a launch of some microseconds must not show
    wanted = max(least, shortest_s * device.bandwidth.bytes_per_s if device.bandwidth else 0.0)
    memory_share = 1 / 16
    most = device.memory_bytes * memory_share if device.memory_bytes else wanted
    element_bytes = 3 * 4  # of one element
    return 1 << ceil(log2(min(wanted, most) / element_bytes))
