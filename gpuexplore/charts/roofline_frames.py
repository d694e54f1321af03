"""The data frames of a roofline chart: lines, ridges, labels and points, and the window they are seen through."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log10

import pandas as pd

from gpuexplore.analysis.roofline import Point
from gpuexplore.analysis.roofs import Roof, memory_ridges, ridges
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Origin
from gpuexplore.core.units import (
    format_bytes_per_s,
    format_flop_per_s,
    format_intensity,
    format_percent,
    format_seconds,
)
from gpuexplore.operations import operation_named

BASES = ("datasheet or formula", "microbenchmark", "best result so far")
LOWEST_INTENSITY = 1 / 16
MARGIN = 2.0  # beyond the outermost point, on either side
LABELS_FROM = 0.7  # of the width: the labels of flat roofs stand right of it, the points left
LABELS_TO = 0.12  # of the width: the labels of slopes stand left of it
PIXELS = 400  # of the drawing's height: what labels need is a share of it
LABEL_PIXELS = 15
SLOPED_LABEL_PIXELS = 26  # on a phone the slopes are steep, and labels along them near each other
THICK, THIN = 3.0, 1.5
NEAR_LIMIT = 0.5  # a best result below half of its limit is no roof: other implementations' points lie above it
FrameRow = dict[str, object]


@dataclass(frozen=True, slots=True)
class RooflineWindow:
    """The part of the plane that is drawn, in FLOP/byte and FLOP/s."""

    intensity_low: float
    intensity_high: float
    rate_low: float
    rate_high: float

    @property
    def intensity_decades(self) -> float:
        """Powers of ten along the x axis."""
        return log10(self.intensity_high / self.intensity_low)

    @property
    def rate_decades(self) -> float:
        """Powers of ten along the y axis."""
        return log10(self.rate_high / self.rate_low)


def window(roofs: Sequence[Roof], points: Sequence[Point]) -> RooflineWindow:
    """Return the window that shows every point, every ridge with memory and some of the roofs next to them."""
    shown = [*memory_ridges(roofs).values()]
    shown += [point.intensity for point in points]
    left, right = min([LOWEST_INTENSITY * MARGIN, *shown]), MARGIN * max([1.0, *shown])
    whole = (right / left) ** (1 / (LABELS_FROM - LABELS_TO))  # what the labels leave of the width is for the rest
    low, high = left / whole**LABELS_TO, left * whole ** (1 - LABELS_TO)
    slopes = [roof.rate for roof in roofs if roof.kind != "compute"]
    flats = [roof.rate for roof in roofs if roof.kind == "compute"]
    rates = [point.flop_per_s for point in points]
    floor = [low * min(slopes) * MARGIN] if slopes else flats
    ceiling = flats or [high * max(slopes)] if slopes or flats else [1e12]
    return RooflineWindow(low, high, min([*floor, *rates, ceiling[0]]) / MARGIN, max([*ceiling, *rates]) * MARGIN)


def sloped_roofs(roofs: Sequence[Roof], seen: RooflineWindow) -> pd.DataFrame:
    """Return the two ends of every bandwidth: from the left edge to the highest compute roof."""
    top = max((roof.rate for roof in roofs if roof.kind == "compute"), default=seen.rate_high)
    rows = [
        _roof_row(roof, intensity, intensity * roof.rate, format_bytes_per_s(roof.rate))
        for roof in roofs
        if roof.kind != "compute"
        for intensity in (seen.intensity_low, min(seen.intensity_high, top / roof.rate))
    ]
    return _frame(rows, ROOF_COLUMNS)


def flat_roofs(roofs: Sequence[Roof], seen: RooflineWindow) -> pd.DataFrame:
    """Return the two ends of every compute roof: from the fastest bandwidth to the right edge; equal ones once."""
    fastest = max((roof.rate for roof in roofs if roof.kind != "compute" and not roof.reached), default=None)
    rows = []
    for roof in _distinct(roofs):
        start = roof.rate / fastest if fastest else seen.intensity_low
        rows += [
            _roof_row(roof, intensity, roof.rate, format_flop_per_s(roof.rate))
            for intensity in (max(seen.intensity_low, min(start, seen.intensity_high)), seen.intensity_high)
        ]
    return _frame(rows, ROOF_COLUMNS)


def ridge_marks(roofs: Sequence[Roof], seen: RooflineWindow) -> pd.DataFrame:
    """Return the ridge points in the window, those with memory larger and with their intensity next to them."""
    rows: list[FrameRow] = []
    labelled: set[str] = set()
    for (compute, bandwidth), intensity in ridges(roofs).items():
        if not seen.intensity_low <= intensity <= seen.intensity_high:
            continue
        memory = bandwidth.kind == "memory"
        said = format_intensity(intensity)
        rows.append(
            {
                "intensity": intensity,
                "rate": compute.rate,
                "size": 60 if memory else 18,
                "text": said.split(" ")[0] if memory and said not in labelled else "",
                "label": f"{compute.label} and {bandwidth.label}",
                "said": said,
            }
        )
        labelled |= {said} if memory else set()
    return _frame(rows, ("intensity", "rate", "size", "text", "label", "said"))


def labels_of_flat(roofs: Sequence[Roof], seen: RooflineWindow) -> pd.DataFrame:
    """Return a label for each compute limit, at its right end; limits too near for two labels share one."""
    limits = _distinct([roof for roof in roofs if not roof.reached])
    rows: list[FrameRow] = [
        {
            "intensity": seen.intensity_high,
            "rate": group[0].rate,
            "label": " · ".join(f"{_units_at(roof, roofs)} {format_flop_per_s(roof.rate)}" for roof in group),
            "short": " · ".join(_units_at(roof, roofs) for roof in group),
        }
        for group in _near(limits, LABEL_PIXELS, seen)
    ]
    return _frame(rows, ("intensity", "rate", "label", "short"))


def labels_of_slopes(roofs: Sequence[Roof], seen: RooflineWindow) -> pd.DataFrame:
    """Return a label for each bandwidth limit, along its left end; limits too near for two labels share one."""
    limits = [roof for roof in roofs if roof.kind != "compute" and not roof.reached]
    rows: list[FrameRow] = [
        {
            "intensity": seen.intensity_low,
            "rate": seen.intensity_low * group[0].rate,
            "label": " · ".join(f"{roof.label.split(' ')[0]} {format_bytes_per_s(roof.rate)}" for roof in group),
            "short": " · ".join(roof.label.split(" ")[0] for roof in group),
        }
        for group in _near(limits, SLOPED_LABEL_PIXELS, seen)
    ]
    return _frame(rows, ("intensity", "rate", "label", "short"))


def _near(roofs: Iterable[Roof], pixels: float, seen: RooflineWindow) -> list[list[Roof]]:
    """Return groups of roofs, the highest first, each less than `pixels` below the one above it."""
    groups: list[list[Roof]] = []
    for roof in sorted(roofs, key=lambda each: -each.rate):
        if groups and log10(groups[-1][-1].rate / roof.rate) / seen.rate_decades * PIXELS < pixels:
            groups[-1].append(roof)
        else:
            groups.append([roof])
    return groups


def frame_of_points(points: Sequence[Point]) -> pd.DataFrame:
    """Return a row for each point, with the words of its tooltip."""
    rows: list[FrameRow] = [
        {
            "intensity": point.intensity,
            "rate": point.flop_per_s,
            "dtype": point.dtype,
            "run": point.run,
            "text": point.origin.label if point.origin is Origin.PUBLISHED else "",
            **_words(point),
        }
        for point in points
    ]
    columns = ("intensity", "rate", "dtype", "run", "text", "case", "operation", "shape", "time", "rate_said")
    return _frame(rows, (*columns, "intensity_said", "share", "roof", "origin", "run_said"))


def _words(point: Point) -> dict[str, str]:
    return {
        "case": point.label,
        "operation": operation_named(point.operation).title,
        "shape": shape_label(point.shape),
        "time": format_seconds(point.time_s),
        "rate_said": format_flop_per_s(point.flop_per_s),
        "intensity_said": format_intensity(point.intensity),
        "share": format_percent(point.fraction) if point.fraction is not None else "unknown",
        "roof": roof_above(point),
        "origin": point.origin.label,
        "run_said": point.run or point.source or "none",
    }


def roof_above(point: Point) -> str:
    """Return what a reader calls the roof above a point, e.g. ``L2 cache``, ``bf16, matrix units``."""
    return point.roof.label if point.roof else "unknown"


def basis(roof: Roof) -> str:
    """Return how a roof was found, one of BASES."""
    return BASES[2] if roof.reached else BASES[1] if roof.measured else BASES[0]


def units_label(roofs: Iterable[Roof]) -> str:
    """Return the dtypes and units of equal compute roofs, e.g. ``fp32``, ``fp32 and fp64 matrix``."""
    units: dict[str, set[str]] = {}
    for roof in roofs:
        units.setdefault(roof.dtype or "", set()).add(roof.unit or "")
    groups: dict[str, list[str]] = {}
    for name in sorted(units, key=list(FORMATS).index):
        groups.setdefault(" ".join(units[name]) if len(units[name]) == 1 else "", []).append(name)
    return " and ".join(f"{', '.join(groups[unit])} {unit}".strip() for unit in sorted(groups))


def _units_at(roof: Roof, roofs: Iterable[Roof]) -> str:
    return units_label(each for each in roofs if each.dtype and not each.reached and each.rate == roof.rate)


def _distinct(roofs: Iterable[Roof]) -> list[Roof]:
    """Return the compute roofs, one of each rate: rather of a dtype that has it on both units, and on matrix units."""
    order = list(FORMATS)
    compute = [roof for roof in roofs if roof.dtype and not _far_below(roof, roofs)]
    alike = Counter((roof.rate, roof.dtype) for roof in compute)
    compute.sort(
        key=lambda roof: (-alike[roof.rate, roof.dtype], roof.unit != "matrix", order.index(roof.dtype or order[0]))
    )
    return list({(roof.rate, roof.reached): roof for roof in reversed(compute)}.values())[::-1]


def _far_below(roof: Roof, roofs: Iterable[Roof]) -> bool:
    """Return whether the best result so far is too far below its limit to show what can be reached."""
    limits = [each.rate for each in roofs if not each.reached and (each.dtype, each.unit) == (roof.dtype, roof.unit)]
    return roof.reached and bool(limits) and roof.rate < NEAR_LIMIT * max(limits)


def _roof_row(roof: Roof, intensity: float, rate: float, said: str) -> FrameRow:
    return {
        "line": f"{roof.label}{roof.reached}",
        "intensity": intensity,
        "rate": rate,
        "dtype": roof.dtype or "",
        "width": THICK if roof.unit == "matrix" or roof.kind == "memory" else THIN,
        "label": roof.label,
        "said": said,
        "basis": basis(roof),
        "source": f"{PEAK_SOURCES[roof.peak_kind].label}: {roof.source}" if not roof.reached else roof.source,
    }


ROOF_COLUMNS = ("line", "intensity", "rate", "dtype", "width", "label", "said", "basis", "source")


def _frame(rows: Sequence[FrameRow], columns: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns))
