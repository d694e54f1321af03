"""What a roofline shows, in a few plain sentences made from its figures."""

from collections import Counter
from collections.abc import Sequence

from gpuexplore.analysis.roofline.points import Point
from gpuexplore.analysis.roofline.roofs import Ridge, Roof, ridges
from gpuexplore.units import format_flop_per_s, format_intensity, format_percent

USUAL_DTYPE = "fp32"


def explain(roofs: Sequence[Roof], points: Sequence[Point]) -> tuple[str, ...]:
    """Return what the ridge means here, on which side the points lie, and how near to their roofs they come."""
    sentences = (_ridge(roofs, points), _sides(points), _nearest(points), _farthest(points))
    return tuple(sentence for sentence in sentences if sentence)


def _ridge(roofs: Sequence[Roof], points: Sequence[Point]) -> str | None:
    one = _usual_ridge(roofs, points)
    if one is None:
        return None
    return (
        f"In {one.compute.dtype} the ridge point is at **{format_intensity(one.intensity)}**: work that computes less "
        f"with each byte it moves waits for memory, and only work right of it can reach "
        f"{format_flop_per_s(one.compute.rate)}."
    )


def _usual_ridge(roofs: Sequence[Roof], points: Sequence[Point]) -> Ridge | None:
    """Return the ridge with memory in the dtype most points have, else the usual one, else the first."""
    found = [ridge for ridge in ridges(roofs) if ridge.bandwidth.kind == "memory"]
    counts = Counter(point.compute.dtype for point in points if point.compute)
    return max(
        found,
        key=lambda one: (counts[one.compute.dtype], one.compute.dtype == USUAL_DTYPE, one.compute.rate),
        default=None,
    )


def _sides(points: Sequence[Point]) -> str | None:
    counts = Counter(point.limit for point in points)
    known = counts["compute"] + counts["memory"] + counts["cache"]
    if not known:
        return None
    parts = [
        f"{_count(counts['compute'])} under a flat roof, where arithmetic is the limit" if counts["compute"] else None,
        f"{_count(counts['memory'])} under the slope of memory" if counts["memory"] else None,
        f"{_count(counts['cache'])} under the slope of the cache that holds the data" if counts["cache"] else None,
    ]
    listed = [part for part in parts if part]
    unknown = len(points) - known
    rest = f"; of {unknown} the roof is unknown" if unknown else ""
    joined = listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])}, and {listed[-1]}"
    return (
        f"Of the {len(points)} points, {joined}{rest}." if len(points) > 1 else f"The point lies {_place(points[0])}."
    )


def _count(count: int) -> str:
    return f"{count} {'lies' if count == 1 else 'lie'}"


def _place(point: Point) -> str:
    return {
        "compute": "under a flat roof, where arithmetic is the limit",
        "memory": "under the slope of memory",
        "cache": "under the slope of the cache that holds its data",
    }[point.limit or "compute"]


def _nearest(points: Sequence[Point]) -> str | None:
    best = max(points, key=lambda point: point.share or 0.0, default=None)
    if best is None or best.share is None:
        return None
    above = " (above it: its data come from a cache, or the roof is too low)" if best.share > 1 else ""
    return f"Nearest to its roof is **{best.name}**, at {format_percent(best.share)}{above}."


def _farthest(points: Sequence[Point]) -> str | None:
    known = [point for point in points if point.share is not None]
    if len(known) < 2:
        return None
    worst = min(known, key=lambda one: one.share or 0.0)
    return (
        f"Farthest below is **{worst.name}**, at {format_percent(worst.share)}; the usual reasons are the "
        "cost of a call, data that move more than once, and instructions narrower than the unit."
    )
