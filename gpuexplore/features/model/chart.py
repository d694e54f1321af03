"""Memory moment by moment: what stands on top of what while layers run forward and backward, and where the peak is."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby, pairwise

from gpuexplore.charts import LAYERED, NEUTRAL, Spec, layer, levels, nominal, number, si_label, with_halo
from gpuexplore.core.units import format_gigabytes
from gpuexplore.features.model.analysis.memory_model import KINDS_OF_MEMORY
from gpuexplore.features.model.analysis.training import MemoryTimeline, TimelinePoint

MOST_MOMENTS = 240  # more would be narrower than a pixel


def memory_timeline(memory: MemoryTimeline, capacities: Mapping[str, int]) -> Spec:
    """Return the bytes of each kind over the moments of a step, with the peak marked.

    Args:
        memory: of a training step, or of serving.
        capacities: bytes by label, drawn as lines where they are near the peak.
    """
    points = _condensed(memory.timeline)
    wide = max(1.0, len(points) / 25)  # of the optimizer's step; layers are equally wide
    edges = list(accumulate((1.0 if point.layer else wide for point in points), initial=0.0))
    bars = _bars(points, edges)
    # a memory beyond twice the peak would flatten the chart, one below a quarter of it is lost in the bars
    peak_bytes = memory.total_bytes
    near = {label: size for label, size in capacities.items() if 0.25 * peak_bytes <= size <= 2 * peak_bytes}
    top = 1.3 * max(memory.total_bytes, *near.values(), 1)  # above the peak: its label, and the names of the phases
    serves = memory.most("KV cache") > 0
    kinds = ["KV cache" if serves and kind == "optimizer state" else kind for kind in KINDS_OF_MEMORY]
    drawn = {bar["kind"] for bar in bars}
    legend: Spec = {"title": None, "orient": "top", "values": [kind for kind in kinds if kind in drawn]}
    legend |= {"columns": {"expr": "width < 480 ? 3 : 6"}, "symbolType": "square"}
    base = {
        "x": number(
            "x",
            title="Tokens of each sequence" if serves else "Moments of a step, layer by layer",
            scale={"domain": [0, edges[-1]], "nice": False},
            axis={"labels": False, "ticks": False, "grid": False},
        ),
        "x2": {"field": "x2"},
        "y": number(
            "y",
            title="Memory",
            scale={"domain": [0, top], "nice": False},
            axis={"labelExpr": si_label("B"), "tickCount": 6},
        ),
        "y2": {"field": "y2"},
        "color": nominal("kind", scale={"domain": kinds}, legend=legend),
        "tooltip": [
            nominal("moment", title="Moment"),
            nominal("kind", title="Kind"),
            nominal("size", title="Of it"),
            nominal("total", title="All together"),
        ],
    }
    layers = [
        layer("rect", base, strokeWidth=0),
        *_phases(points, edges),
        *levels(near),
        *_peak(memory, points, edges, above=any(abs(size - peak_bytes) < 0.1 * top for size in near.values())),
    ]
    said = _describe_memory(memory, capacities)
    return {**LAYERED, "data": {"values": bars}, "layer": layers, "height": 360, "description": said}


def _describe_memory(memory: MemoryTimeline, capacities: Mapping[str, int]) -> str:
    """Return the alternative text: the peak, its moment, its largest kinds, and the memory to compare with."""
    kinds = sorted(memory.peak.bytes_by_kind.items(), key=lambda item: -item[1])
    largest = ", ".join(f"{kind} {format_gigabytes(size)}" for kind, size in kinds[:3] if size)
    comparisons = "".join(f"; {label}: {format_gigabytes(size)}" for label, size in capacities.items())
    return (
        f"Memory of {memory.model.title} over a step at batch {memory.batch:,}: peak "
        f"{format_gigabytes(memory.total_bytes)} in {memory.peak.moment}, of it {largest}{comparisons}."
    )


def _condensed(points: Sequence[TimelinePoint]) -> list[TimelinePoint]:
    """Return at most about MOST_MOMENTS points: of several neighbours in one phase the one that needs most."""
    size = -(-len(points) // MOST_MOMENTS)
    kept = []
    for _, phase in groupby(points, key=_drawn_phase):
        own = list(phase)
        kept += [
            max(own[start : start + size], key=lambda point: point.total_bytes) for start in range(0, len(own), size)
        ]
    return kept


def _drawn_phase(point: TimelinePoint) -> str:
    return "backward" if point.phase == "recomputation" else point.phase  # it comes before that of each segment


def _bars(points: Sequence[TimelinePoint], edges: Sequence[float]) -> list[Spec]:
    rows: list[Spec] = []
    overlap = edges[-1] / 2000  # so that no seams show between neighbours
    for point, (start, end) in zip(points, pairwise(edges), strict=True):
        below = 0
        total = format_gigabytes(point.total_bytes)
        for kind, size in point.bytes_by_kind.items():
            if size:
                row = {"x": start, "x2": min(end + overlap, edges[-1]), "y": below, "y2": below + size, "kind": kind}
                rows.append(row | {"moment": point.moment, "size": format_gigabytes(size), "total": total})
            below += size
    return rows


def _phases(points: Sequence[TimelinePoint], edges: Sequence[float]) -> list[Spec]:
    """Return a line where a phase begins, and its name where it fits."""
    names = [_drawn_phase(point) for point in points]
    starts = [start for start, name in enumerate(names) if not start or names[start - 1] != name]
    ends = [*starts[1:], len(points)]
    rows = [
        {"x": edges[start], "middle": (edges[start] + edges[end]) / 2, "phase": names[start]}
        for start, end in zip(starts, ends, strict=True)
    ]
    named = [
        row
        for row, start, end in zip(rows, starts, ends, strict=True)
        if edges[end] - edges[start] >= 0.12 * edges[-1]  # enough for its name
    ]
    begin, own = ({"data": {"values": values}} for values in (rows[1:], named))
    words = {"x": number("middle"), "y": {"value": 4}, "text": nominal("phase")}
    line = layer("rule", {"x": number("x")}, begin, color=NEUTRAL, strokeDash=[2, 3])
    return [line, *with_halo(layer("text", words, own, color=NEUTRAL, fontSize=13, baseline="top"))]


def _peak(
    memory: MemoryTimeline, points: Sequence[TimelinePoint], edges: Sequence[float], *, above: bool
) -> list[Spec]:
    """Return the mark and the label of the peak; `above` the label of a memory at the same height, if need be."""
    peak = max(range(len(points)), key=lambda index: points[index].total_bytes)
    middle = (edges[peak] + edges[peak + 1]) / 2
    row = {
        "x": middle,
        "y": memory.total_bytes,
        "label": f"{format_gigabytes(memory.total_bytes)}: {memory.peak.moment}",
    }
    rows = {"data": {"values": [row]}}
    base = {"x": number("x"), "y": number("y")}
    at_left = middle > edges[-1] / 2
    style = {"shape": "triangle-down", "filled": True, "size": 110, "color": NEUTRAL, "opacity": 1, "yOffset": -7}
    words = layer(
        "text",
        base | {"text": nominal("label")},
        rows,
        align="right" if at_left else "left",
        dx=-10 if at_left else 10,
        dy=-28 if above else -12,
        fontSize=13,
        fontWeight=600,
        color=NEUTRAL,
    )
    return [layer("point", base, rows, **style), *with_halo(words)]
