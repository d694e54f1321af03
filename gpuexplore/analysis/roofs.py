"""The roofs of a device: every limit it has, what was reached below them, and the ridge points where they meet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from gpuexplore.analysis.mfu import cache_mode, device_of
from gpuexplore.analysis.rates import byte_count, bytes_per_s, flop_per_s, shape_label
from gpuexplore.analysis.roofline import intensity, ridge_point
from gpuexplore.model import Device, PeakKind, Result, Unit
from gpuexplore.operations import operation_named

RoofKind = Literal["compute", "memory", "cache"]
CACHES_OVERFLOWN = 4  # STREAM's rule: arrays of four caches, so that memory delivers nearly all of it


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


def same_device(one: Device | None, other: Device) -> bool:
    """Return whether a result of `one` says something about `other`: the same row of the table, or the same processor.

    Virtual machines give many processors one name, so the cores have to agree too where both are known.
    """
    if one is None:
        return False
    if one.spec_key is not None and one.spec_key == other.spec_key:
        return True
    cores = {one.cores, other.cores} - {None}
    return (one.kind, one.name) == (other.kind, other.name) and len(cores) < 2


def roofs(device: Device, known_results: Iterable[Result] = ()) -> tuple[Roof, ...]:
    """Return the compute roofs of every dtype and unit, those of the caches and of memory, then what was reached.

    Args:
        known_results: results of any devices; the best on this one become roofs with their case and date.
    """
    usable = [one for one in known_results if same_device(device_of(one), device) and _believable(one)]
    limits = _limits(device)
    return (*limits, *_reached_compute(usable, limits), *_reached_memory(usable))


def ridges(all_roofs: Sequence[Roof]) -> tuple[Ridge, ...]:
    """Return the ridge point of every compute limit with every bandwidth limit."""
    limits = [one for one in all_roofs if not one.reached]
    compute = [one for one in limits if one.kind == "compute"]
    bandwidths = [one for one in limits if one.kind != "compute"]
    return tuple(Ridge(high, slope, ridge_point(high.rate, slope.rate)) for high, slope in product(compute, bandwidths))


def compute_roof(all_roofs: Iterable[Roof], dtype: str, unit: Unit) -> Roof | None:
    """Return the limit of one dtype on one unit; None where it is unknown."""
    limits = (one for one in all_roofs if not one.reached)
    return next((one for one in limits if (one.dtype, one.unit) == (dtype, unit)), None)


def memory_roof(all_roofs: Iterable[Roof]) -> Roof | None:
    """Return the limit of memory; None where it is unknown."""
    return next((one for one in all_roofs if one.kind == "memory" and not one.reached), None)


def _limits(device: Device) -> tuple[Roof, ...]:
    compute = [
        Roof(
            "compute", _units(one.dtype, one.unit), one.flop_per_s, one.kind, one.source, dtype=one.dtype, unit=one.unit
        )
        for one in device.peaks
    ]
    caches = [
        Roof(
            "cache",
            f"L{one.level} cache",
            size_bytes=one.size_bytes,
            rate=one.bandwidth.bytes_per_s,
            peak_kind=one.bandwidth.kind,
            source=one.bandwidth.source,
        )
        for one in device.caches
    ]
    memory = [Roof("memory", "Memory", one.bytes_per_s, one.kind, one.source) for one in (device.bandwidth,) if one]
    return (*compute, *caches, *memory)


def _units(dtype: str, unit: Unit) -> str:
    return f"{dtype}, {unit} units"


def _believable(result: Result) -> bool:
    """Return whether a result was measured, and not above what is physically possible."""
    return result.measurement is not None and all(flag.name != "over_peak" for flag in result.flags)


def _reached_compute(results: Iterable[Result], limits: Sequence[Roof]) -> tuple[Roof, ...]:
    """Return the best matrix product in each dtype and unit."""
    best: dict[tuple[str, Unit], Result] = {}
    for one in results:
        operation = operation_named(one.case.operation)
        key = operation.implementation_named(one.case.implementation).computes_in(one.case.dtype, device_of(one))
        if operation.is_matrix_product and _is_large(one, compute_roof(limits, *key), memory_roof(limits)):
            best[key] = max(best.get(key, one), one, key=lambda each: flop_per_s(each) or 0.0)
    return tuple(
        Roof(
            "compute", f"best product in {_units(dtype, unit)}", flop_per_s(one) or 0.0, "measured_ceiling",
            _case_and_date(one), reached=True, dtype=dtype, unit=unit,
        )
        for (dtype, unit), one in best.items()
    )  # fmt: skip


def _is_large(result: Result, compute: Roof | None, memory: Roof | None) -> bool:
    """Return whether arithmetic, not memory, is what this product can show."""
    if compute is None or memory is None:
        return True
    return intensity(result.case) >= ridge_point(compute.rate, memory.rate)


def _reached_memory(results: Iterable[Result]) -> tuple[Roof, ...]:
    """Return the best bandwidth of an operation that memory bounds at every size."""
    fed = [one for one in results if not operation_named(one.case.operation).is_matrix_product and _from_memory(one)]
    best = max(fed, key=lambda one: bytes_per_s(one) or 0.0, default=None)
    if best is None:
        return ()
    rate, source = bytes_per_s(best) or 0.0, _case_and_date(best)
    return (Roof("memory", "best memory rate", rate, "measured_ceiling", source, reached=True),)


def _from_memory(result: Result) -> bool:
    """Return whether memory delivered nearly all of the data."""
    device = device_of(result)
    if cache_mode(result) == "cold":
        return True
    known = device.cache_bytes if device else None
    return known is not None and byte_count(result.case) >= CACHES_OVERFLOWN * known


def _case_and_date(result: Result) -> str:
    case = result.case
    date = f", {result.environment.started_utc[:10]}" if result.environment else ""
    title = operation_named(case.operation).title
    return f"{title}, {shape_label(case.shape)}, {case.implementation} in {case.dtype}{date}"
