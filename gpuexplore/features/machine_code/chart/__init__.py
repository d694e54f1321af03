"""Bars of a kernel ladder, each rung's share of the vendor library and upper bound, and of block shapes."""

from collections.abc import Callable, Mapping, Sequence

import altair as alt
import pandas as pd

from gpuexplore.analysis.occupancy import BlockShape
from gpuexplore.charts.axes import si_label
from gpuexplore.charts.palette import color_of, scale_of
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.units import format_flop_per_s, format_interval, format_percent, format_seconds
from gpuexplore.features.machine_code.analysis import InstructionBound
from gpuexplore.features.machine_code.analysis.ladder import Rung

ROW_HEIGHT = 40
TOOLTIPS = {"rung": "Kernel", "percent": "Share", "interval": "95 % interval", "time": "Median time", "baseline": "Of"}


def ladder(rungs: Sequence[Rung], published: Mapping[str, Mapping[str, str]] | None = None) -> alt.LayerChart:
    """Return a bar for each measured rung, in order, and the library itself as a line.

    Args:
        published: what other authors' kernels of that kind reached, by implementation; drawn as ticks.
    """
    columns = ["rung", "share", "low", "high", *(name for name in TOOLTIPS if name != "rung")]
    frame = pd.DataFrame([_row(rung) for rung in rungs if rung.share is not None], columns=columns)
    known = [row for rung in rungs if (row := (published or {}).get(rung.implementation.name))]
    ticked = [(row["implementation"], float(row["share"]), row["device"]) for row in known]
    said = [(name, share, f"{format_percent(share)} on {device}") for name, share, device in ticked]
    other = pd.DataFrame(said, columns=["rung", "share", "said"])
    names = [rung.implementation.name for rung in rungs]
    largest = max([1.0, *frame["share"], *other["share"]])
    y = alt.Y("rung:N", sort=names, title=None, axis=alt.Axis(labelLimit=240), scale=alt.Scale(domain=names))
    x = alt.X(
        "share:Q",
        title="Share of the library's speed",
        axis=alt.Axis(format=".0%", tickCount=6),
        scale=alt.Scale(domain=[0, largest * 1.15]),
    )
    base = alt.Chart(frame).encode(y=y, x=x)
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in TOOLTIPS.items()]
    bars = base.mark_bar(height={"band": 0.55}).encode(
        color=alt.Color("rung:N", scale=scale_of(names), legend=None), tooltip=words
    )
    spans = base.mark_rule(strokeWidth=2, color=NEUTRAL, clip=True).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    labels = base.mark_text(align="left", dx=8, fontSize=13, color=NEUTRAL).encode(text=alt.Text("percent:N"))
    line = (
        alt.Chart(pd.DataFrame({"share": [1.0]})).mark_rule(color=NEUTRAL, strokeDash=[4, 3]).encode(x=alt.X("share:Q"))
    )
    ticks = alt.Chart(other).mark_tick(thickness=3, size=24, color=NEUTRAL, orient="vertical")
    ticks = ticks.encode(y=y, x=x, tooltip=[alt.Tooltip("said:N", title="Published")])
    shares = [f"{rung.implementation.name} {format_percent(rung.share)}" for rung in rungs if rung.share is not None]
    described = f"Share of the library's speed: {', '.join(shares) or 'nothing is measured'}"
    sized: alt.LayerChart = alt.LayerChart(layer=[bars, spans, line, ticks, labels]).properties(
        width="container", height=ROW_HEIGHT * len(names) + 50, description=described
    )
    return sized


def _row(rung: Rung) -> dict[str, object]:
    low, high = rung.ci95 or (rung.share, rung.share)
    median_s = rung.result.measurement.median_s if rung.result and rung.result.measurement else None
    return {
        "rung": rung.implementation.name,
        "share": rung.share,
        "low": low,
        "high": high,
        "percent": format_percent(rung.share),
        "interval": format_interval(rung.ci95, format_percent) if rung.ci95 else "too few samples",
        "time": format_seconds(median_s),
        "baseline": rung.baseline,
    }


def rung_bounds_chart(bounds: Mapping[str, InstructionBound]) -> alt.LayerChart:
    """Return a bar for each rung whose bound is known, hollow, for nothing of it is measured.

    It is in FLOP/s, for rungs use units of different peaks.
    """
    known = {name: bound for name, bound in bounds.items() if bound.flop_per_s is not None}
    tooltips = {"rung": "Kernel", "said": "At most", "percent": "Of its units' peak", "evidence": "First bottleneck"}
    frame = pd.DataFrame(
        [
            {
                "rate": bound.flop_per_s,
                "rung": name,
                "said": f"≤ {format_flop_per_s(bound.flop_per_s)}",
                "percent": format_percent(bound.share_of_peak),
                "evidence": bound.evidence,
            }
            for name, bound in known.items()
        ],
        columns=["rate", *tooltips],
    )
    names = list(frame["rung"])
    y = alt.Y("rung:N", sort=names, title=None, axis=alt.Axis(labelLimit=240), scale=alt.Scale(domain=names))
    x = alt.X(
        "rate:Q",
        title="Bound by the machine code",
        axis=alt.Axis(labelExpr=si_label("FLOP/s"), tickCount=6),
        scale=alt.Scale(domain=[0, 1.25 * max(frame["rate"], default=1.0)]),
    )
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in tooltips.items()]
    base = alt.Chart(frame).encode(y=y, x=x)
    bars = base.mark_bar(height={"band": 0.55}, fillOpacity=0.15, strokeWidth=2, strokeDash=[5, 3]).encode(
        color=alt.Color("rung:N", scale=scale_of(names), legend=None),
        stroke=alt.Stroke("rung:N", scale=scale_of(names), legend=None),
        tooltip=words,
    )
    labels = base.mark_text(align="left", dx=8, fontSize=13, color=NEUTRAL).encode(text=alt.Text("said:N"))
    rates = [f"{name} {format_flop_per_s(bound.flop_per_s)}" for name, bound in known.items()]
    described = f"Upper bound by the machine code: {', '.join(rates) or 'nothing is known'}"
    chart: alt.LayerChart = alt.LayerChart(layer=[bars, labels]).properties(
        width="container", height=ROW_HEIGHT * max(1, len(names)) + 50, description=described
    )
    return chart


BLOCK_TOOLTIPS = {"block": "Block", "said": "Value", "registers": "Registers", "limiter": "Limited by"}


def block_occupancy(implementation: str, shapes: Sequence[BlockShape]) -> alt.LayerChart:
    """Return the theoretical occupancy of each block shape of a kernel."""
    drawn = [(shape, shape.occupancy.occupancy) for shape in shapes if shape.occupancy]
    x = alt.X("value:Q", title="Occupancy", axis=alt.Axis(format=".0%", tickCount=5), scale=alt.Scale(domain=[0, 1.12]))
    return _bars(_block_frame(drawn, format_percent), x, color_of(implementation))


def block_times(implementation: str, shapes: Sequence[BlockShape]) -> alt.LayerChart:
    """Return the measured median seconds per call of each block shape of a kernel."""
    drawn = [
        (shape, shape.result.measurement.median_s) for shape in shapes if shape.result and shape.result.measurement
    ]
    largest = max((seconds for _, seconds in drawn), default=1.0)
    scale = alt.Scale(domain=[0, largest * 1.2])
    x = alt.X("value:Q", title="Time per call", axis=alt.Axis(labels=False, ticks=False), scale=scale)
    return _bars(_block_frame(drawn, format_seconds), x, color_of(implementation))


def block_name(shape: BlockShape) -> str:
    """Return e.g. ``16 × 16``."""
    return " × ".join(map(str, shape.block))


def _bars(frame: pd.DataFrame, x: alt.X, color: alt.ExprRef) -> alt.LayerChart:
    y = alt.Y("block:N", sort=list(frame["block"]), title=None)
    words = [alt.Tooltip(f"{name}:N", title=heading) for name, heading in BLOCK_TOOLTIPS.items()]
    base = alt.Chart(frame).encode(y=y, x=x, tooltip=words)
    bars = base.mark_bar(height={"band": 0.55}, color=color)
    labels = base.mark_text(align="left", dx=6, fontSize=13, color=NEUTRAL).encode(text=alt.Text("said:N"))
    listed = ", ".join(f"{row.block} {row.said}" for row in frame.itertuples()) or "nothing is known"
    chart: alt.LayerChart = alt.LayerChart(layer=[bars, labels]).properties(
        width="container",
        height=34 * max(1, len(frame)) + 50,
        description=f"{x['title']} by block shape: {listed}",
    )
    return chart


def _block_frame(drawn: Sequence[tuple[BlockShape, float]], words: Callable[[float], str]) -> pd.DataFrame:
    rows = [
        {
            "block": block_name(shape),
            "value": value,
            "said": words(value),
            "registers": shape.compiled.registers_per_thread if shape.compiled else None,
            "limiter": ", ".join(shape.occupancy.limiters) if shape.occupancy else None,
        }
        for shape, value in drawn
    ]
    return pd.DataFrame(rows, columns=["value", *BLOCK_TOOLTIPS])
