"""What a roofline shows, in a few plain sentences made from its figures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.roofline.points import Point
from gpuexplore.analysis.roofline.roofs import Ridge, Roof, ridges
from gpuexplore.units import format_flop_per_s, format_intensity, format_percent

DEFAULT_DTYPE = "fp32"


def explain(roofs: Sequence[Roof], points: Sequence[Point]) -> tuple[str, ...]:
    """Return what the ridge means here, what bounds the points, and how near to their roofs they come."""
    sentences = (_ridge(roofs, points), _bounds(points), _nearest(points), _farthest(points))
    return tuple(sentence for sentence in sentences if sentence)


def _ridge(roofs: Sequence[Roof], points: Sequence[Point]) -> str | None:
    ridge = _default_ridge(roofs, points)
    if ridge is None:
        return None
    return (
        f"In {ridge.compute.dtype} the ridge point is at **{format_intensity(ridge.intensity)}**: work that computes "
        "less with each byte it moves waits for memory, and only work right of it can reach "
        f"{format_flop_per_s(ridge.compute.rate)}."
    )


def _default_ridge(roofs: Sequence[Roof], points: Sequence[Point]) -> Ridge | None:
    """Return the ridge with memory in the dtype most points have, else in the default one, else the first."""
    found = [ridge for ridge in ridges(roofs) if ridge.bandwidth.kind == "memory"]
    counts = Counter(point.compute.dtype for point in points if point.compute)
    return max(
        found,
        key=lambda ridge: (counts[ridge.compute.dtype], ridge.compute.dtype == DEFAULT_DTYPE, ridge.compute.rate),
        default=None,
    )


BOUNDS: Mapping[Bound, str] = MappingProxyType(
    {
        "compute": "compute-bound",
        "memory": "memory-bound",
        "cache": "bound by the bandwidth of a cache",
        "overhead": "bound by the cost of a call",
    }
)


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
        f"Farthest below is **{worst.name}**, at {format_percent(worst.fraction)}; the usual reasons are the "
        "cost of a call, data that move more than once, and instructions narrower than the unit."
    )
