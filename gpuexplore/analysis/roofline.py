"""Results as points on a roofline: their intensity, their rate, the roof above them, and what the picture shows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuexplore.analysis.model import AnalyzedResult, Bound
from gpuexplore.analysis.roofs import Roof, attainable_flop_per_s, compute_roof, memory_ridges, memory_roof
from gpuexplore.analysis.utilization import PublishedResult, arithmetic_of, best_results, flop_count, shape_label
from gpuexplore.core import Device, Origin, Result, Shape, format_flop_per_s, format_intensity, format_percent
from gpuexplore.core.dtypes import format_named
from gpuexplore.operations import operation_named


@dataclass(frozen=True, slots=True)
class Point:
    """One result on the roofline of a device.

    Attributes:
        origin: measured on this server, recorded on other hardware, or published by others.
        run: what its link names; None where there is none.
        label: implementation and dtype, with another layout than NN; or who published it.
        dtype: of its arrays.
        time_s: median seconds per call.
        intensity: FLOP/byte, each array moved once.
        bound: what limits it at best; None is unknown.
        compute: the roof of the dtype and units its arithmetic uses; None is unknown.
        serving: the roof of what delivers its data: memory, or the cache they stay in; None is unknown.
        attainable: FLOP/s of the roof above it; None is unknown.
        source: where a published result is printed.
    """

    origin: Origin
    run: str | None
    operation: str
    label: str
    shape: Shape
    dtype: str
    time_s: float
    intensity: float
    flop_per_s: float
    bound: Bound | None
    compute: Roof | None
    serving: Roof | None
    attainable: float | None
    source: str | None = None

    @property
    def fraction(self) -> float | None:
        """Fraction of the attainable at its intensity, 0 to 1; None where the roof above it is unknown."""
        return self.flop_per_s / self.attainable if self.attainable else None

    @property
    def roof(self) -> Roof | None:
        """The roof above it; None where that is unknown."""
        if self.attainable is None or self.compute is None:
            return None
        return self.compute if self.attainable == self.compute.rate else self.serving

    @property
    def name(self) -> str:
        """Its name in a sentence, e.g. ``torch in bf16 at 512 × 512 × 512``."""
        return f"{self.label} at {shape_label(self.shape)}"


def point_of(analyzed: AnalyzedResult, roofs: Sequence[Roof], *, run: str | None = None) -> Point | None:
    """Return where a result stands below `roofs`; None without a measurement, or without FLOPs."""
    if analyzed.median_s is None or not analyzed.flop_per_s:
        return None
    compute = _compute_roof(analyzed, roofs)
    serving = _serving_roof(analyzed, roofs)
    layout = analyzed.case.options.layout
    return Point(
        origin=analyzed.origin,
        run=run,
        operation=analyzed.case.operation,
        label=analyzed.label if layout == "NN" else f"{analyzed.label}, {layout}",
        shape=analyzed.case.shape,
        dtype=analyzed.case.dtype,
        time_s=analyzed.median_s,
        intensity=analyzed.intensity,
        flop_per_s=analyzed.flop_per_s,
        bound=analyzed.bound,
        compute=compute,
        serving=serving,
        attainable=_attainable(
            analyzed.intensity, compute, serving, None if analyzed.limits.one_thread else memory_roof(roofs)
        ),
    )


def _compute_roof(analyzed: AnalyzedResult, roofs: Sequence[Roof]) -> Roof | None:
    """Return the roof of its arithmetic; that of one core where it uses no more."""
    dtype, unit = arithmetic_of(analyzed.result)
    peak = analyzed.limits.peak
    if not analyzed.limits.one_thread:
        return compute_roof(roofs, dtype, unit)
    label = f"{dtype}, {unit} units, one thread"
    return Roof("compute", label, peak.flop_per_s, peak.kind, peak.source, dtype=dtype, unit=unit) if peak else None


def _serving_roof(analyzed: AnalyzedResult, roofs: Sequence[Roof]) -> Roof | None:
    """Return the roof of what delivers its data: the smallest cache that keeps them, where one does, else memory.

    That of one core where it uses no more.
    """
    most = analyzed.limits.serving
    if analyzed.limits.one_thread:
        cached = analyzed.cache_resident_reason is not None
        label = f"{'Cache' if cached else 'Memory'}, one thread"
        return Roof("cache" if cached else "memory", label, most.bytes_per_s, most.kind, most.source) if most else None
    if analyzed.cache_resident_reason is None:
        return memory_roof(roofs)
    caches = [(roof.size_bytes, roof) for roof in roofs if roof.kind == "cache" and roof.size_bytes]
    large_enough = [pair for pair in caches if pair[0] >= analyzed.byte_count]
    return min(large_enough, key=lambda pair: pair[0])[1] if large_enough else None


def _attainable(flop_per_byte: float, compute: Roof | None, serving: Roof | None, memory: Roof | None) -> float | None:
    """Return the FLOP/s of the roof above an intensity; None while a roof that decides it is unknown.

    Where memory alone would be fast enough, an unknown cache (`serving` None) decides nothing.
    """
    slope = serving or memory
    if compute is None or slope is None:
        return None
    roof = attainable_flop_per_s(flop_per_byte, compute.rate, slope.rate)
    return roof if serving is not None or roof == compute.rate else None


def published_points(device: Device, roofs: Sequence[Roof]) -> tuple[Point, ...]:
    """Return the best published product in each dtype on this device's row of the table."""
    return tuple(_published(result, roofs) for result in best_results(device.spec_key))


def _published(published: PublishedResult, roofs: Sequence[Roof]) -> Point:
    operation = operation_named("matmul")
    memory = memory_roof(roofs)
    flop_per_byte = operation.flop_count(published.shape) / operation.byte_count(
        published.shape, format_named(published.dtype)
    )
    compute = compute_roof(roofs, published.dtype, "matrix")
    top = _attainable(flop_per_byte, compute, memory, memory)
    return Point(
        origin=Origin.PUBLISHED,
        run=None,
        operation=operation.name,
        label=f"published, {published.dtype} on {published.gpu}",
        shape=published.shape,
        dtype=published.dtype,
        time_s=published.time_s,
        intensity=flop_per_byte,
        flop_per_s=published.flop_per_s,
        bound=_bound(top, compute),
        compute=compute,
        serving=memory,
        attainable=top,
        source=f"{published.source} ({published.note})" if published.note else published.source,
    )


def _bound(top: float | None, compute: Roof | None) -> Bound | None:
    if top is None or compute is None:
        return None
    return "compute" if top == compute.rate else "memory"


def without_flops(results: Iterable[Result]) -> int:
    """Return how many measured results are no point of it, because they compute nothing."""
    return sum(result.measurement is not None and flop_count(result.case) == 0 for result in results)


# What a roofline shows, in a few plain sentences made from its figures.


def explain(roofs: Sequence[Roof], points: Sequence[Point]) -> tuple[str, ...]:
    """Return sentences on the ridge point, the limits of the points, and their shares of the roofs."""
    sentences = (_ridge(roofs, points), _bounds(points), _nearest(points), _farthest(points))
    return tuple(sentence for sentence in sentences if sentence)


def _ridge(roofs: Sequence[Roof], points: Sequence[Point]) -> str | None:
    found = memory_ridges(roofs)
    counts = Counter(point.compute.dtype for point in points if point.compute)  # else the default one, else the first
    compute = max(found, key=lambda roof: (counts[roof.dtype], roof.dtype == "fp32", roof.rate), default=None)
    if compute is None:
        return None
    return (
        f"In {compute.dtype} the ridge point is at **{format_intensity(found[compute])}**: work with "
        "a lower arithmetic intensity is limited by memory, unless a cache holds its data; only work to the right "
        f"of it can reach {format_flop_per_s(compute.rate)}."
    )


BOUNDS: Mapping[Bound, str] = {
    "compute": "compute-bound",
    "memory": "memory-bound",
    "cache": "bound by the bandwidth of a cache",
    "overhead": "bound by call overhead",
}


def _bounds(points: Sequence[Point]) -> str | None:
    """Count the points by what bounds them."""
    counts = Counter(point.bound for point in points if point.bound)
    if not counts:
        return None
    listed = [
        f"{counts[bound]} {'is' if counts[bound] == 1 else 'are'} {BOUNDS[bound]}" for bound in BOUNDS if counts[bound]
    ]
    unknown = len(points) - counts.total()
    rest = [f"the limit of {unknown} is unknown"] if unknown else []
    return f"Of {len(points)} result{'s'[: len(points) > 1]}, {', '.join([*listed, *rest])}."


def _nearest(points: Sequence[Point]) -> str | None:
    best = max(points, key=lambda point: point.fraction or 0.0, default=None)
    if best is None or best.fraction is None:
        return None
    above = " (above it: its data come from a cache, or the roof is too low)" if best.fraction > 1 else ""
    return f"Nearest to its roof is **{best.name}**, at {format_percent(best.fraction)}{above}."


def _farthest(points: Sequence[Point]) -> str | None:
    known = [point for point in points if point.fraction is not None]
    if len(known) < 2:
        return None
    worst = min(known, key=lambda point: point.fraction or 0.0)
    return (
        f"Farthest below is **{worst.name}**, at {format_percent(worst.fraction)}; the usual reasons are "
        "call overhead, data that move more than once, and instructions narrower than the unit."
    )
