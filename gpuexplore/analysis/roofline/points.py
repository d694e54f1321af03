"""Results as points on a roofline: their intensity, their rate, and the roof that is above them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gpuexplore.analysis.roofline.bound import attainable_flop_per_s, intensity
from gpuexplore.analysis.roofline.roofs import Roof, compute_roof, memory_roof
from gpuexplore.analysis.utilization.published import PublishedResult, best_results
from gpuexplore.analysis.utilization.rates import byte_count, flop_count, flop_per_s, shape_label
from gpuexplore.analysis.utilization.utilization import arithmetic_of, cache_resident_reason
from gpuexplore.dtypes import format_named
from gpuexplore.model import Device, Result, Shape
from gpuexplore.operations import operation_named

Origin = Literal["live", "recorded", "published"]
Limit = Literal["compute", "memory", "cache"]


@dataclass(frozen=True, slots=True)
class Point:
    """One result on the roofline of a device.

    Attributes:
        origin: measured on this server, recorded on other hardware, or published by others.
        run: what its link names; None where there is none.
        case: implementation and dtype, or who published it.
        dtype: of its arrays.
        time_s: median seconds per call.
        intensity: FLOP/byte, each array moved once.
        compute: the roof of the dtype and units its arithmetic uses; None is unknown.
        feed: the roof of what delivers its data: memory, or the cache they stay in; None is unknown.
        attainable: FLOP/s of the roof above it; None is unknown.
        source: where a published result is printed.
    """

    origin: Origin
    run: str | None
    operation: str
    case: str
    shape: Shape
    dtype: str
    time_s: float
    intensity: float
    flop_per_s: float
    compute: Roof | None
    feed: Roof | None
    attainable: float | None
    source: str | None = None

    @property
    def share(self) -> float | None:
        """Share of the attainable at its intensity, of one; None where the roof above it is unknown."""
        return self.flop_per_s / self.attainable if self.attainable else None

    @property
    def limit(self) -> Limit | None:
        """Which kind of roof is above it; None where that is unknown."""
        if self.attainable is None or self.compute is None:
            return None
        if self.attainable == self.compute.rate or self.feed is None:
            return "compute"
        return "cache" if self.feed.kind == "cache" else "memory"

    @property
    def name(self) -> str:
        """What a sentence calls it, e.g. ``torch in bf16 at 512 × 512 × 512``."""
        return f"{self.case} at {shape_label(self.shape)}"


def place(result: Result, roofs: Sequence[Roof], *, run: str | None = None, origin: Origin = "live") -> Point | None:
    """Return where `result` stands below `roofs`; None without a measurement, or without FLOPs."""
    rate, case = flop_per_s(result), result.case
    if result.measurement is None or not rate:
        return None
    compute, feed = compute_roof(roofs, *arithmetic_of(result)), serving_roof(result, roofs)
    return Point(
        origin=origin,
        run=run,
        operation=case.operation,
        case=f"{case.implementation} in {case.dtype}",
        shape=case.shape,
        dtype=case.dtype,
        time_s=result.measurement.median_s,
        intensity=intensity(case),
        flop_per_s=rate,
        compute=compute,
        feed=feed,
        attainable=attainable(intensity(case), compute, feed, memory_roof(roofs)),
    )


def serving_roof(result: Result, roofs: Sequence[Roof]) -> Roof | None:
    """Return the roof of what delivers its data: the smallest cache that keeps them, where one does, else memory."""
    if cache_resident_reason(result) is None:
        return memory_roof(roofs)
    needed = byte_count(result.case)
    holding = [roof for roof in roofs if roof.kind == "cache" and roof.size_bytes and roof.size_bytes >= needed]
    return min(holding, key=lambda one: one.size_bytes or 0, default=None)


def attainable(flop_per_byte: float, compute: Roof | None, feed: Roof | None, memory: Roof | None) -> float | None:
    """Return the FLOP/s of the roof above an intensity; None while a roof that decides it is unknown.

    Where memory alone would be fast enough, an unknown cache (`feed` None) decides nothing.
    """
    slope = feed or memory
    if compute is None or slope is None:
        return None
    roof = attainable_flop_per_s(flop_per_byte, compute.rate, slope.rate)
    return roof if feed is not None or roof == compute.rate else None


def published_points(device: Device, roofs: Sequence[Roof]) -> tuple[Point, ...]:
    """Return the best published product in each dtype on this device's row of the table."""
    return tuple(_published(result, roofs) for result in best_results(device.spec_key))


def _published(published: PublishedResult, roofs: Sequence[Roof]) -> Point:
    operation, memory = operation_named("matmul"), memory_roof(roofs)
    flop_per_byte = operation.flop_count(published.shape) / operation.byte_count(
        published.shape, format_named(published.dtype)
    )
    compute = compute_roof(roofs, published.dtype, "matrix")
    return Point(
        origin="published",
        run=None,
        operation=operation.name,
        case=f"published, {published.dtype} on {published.gpu}",
        shape=published.shape,
        dtype=published.dtype,
        time_s=published.time_s,
        intensity=flop_per_byte,
        flop_per_s=published.flop_per_s,
        compute=compute,
        feed=memory,
        attainable=attainable(flop_per_byte, compute, memory, memory),
        source=f"{published.source} ({published.note})" if published.note else published.source,
    )


def without_flops(results: Iterable[Result]) -> int:
    """Return how many measured results have no place, because they compute nothing."""
    return sum(result.measurement is not None and flop_count(result.case) == 0 for result in results)
