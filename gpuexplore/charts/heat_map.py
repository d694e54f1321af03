"""A sweep over two axes as a map: the highest rate at each shape, and which implementation and dtype reached it."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.utilization.best_results import is_ranked
from gpuexplore.charts.points import Lines
from gpuexplore.charts.series import Source, analysis_of, series_name, series_of, si_label
from gpuexplore.core.units import format_bytes_per_s, format_flop_per_s, format_percent, format_seconds


def swept_axes(source: Source) -> tuple[str, str] | None:
    """Return the two axes that a run sweeps over independently of each other; None where it does something else."""
    shapes = {analyzed.case.shape for analyzed in analysis_of(source).results}
    lengths: dict[str, set[int]] = {}
    for shape in shapes:
        for axis, length in shape.axes:
            lengths.setdefault(axis, set()).add(length)
    swept = [axis for axis, found in lengths.items() if len(found) > 1]
    if len(swept) != 2 or len(shapes) < max(4, 1 + max(len(lengths[axis]) for axis in swept)):
        return None
    return swept[0], swept[1]


def heat_map(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return the map of a run that sweeps over two axes: colour and words are the highest rate at each shape.

    Args:
        source: of the results.
        panel: a dtype, or lines: only theirs count; None is all.

    Raises:
        ValueError: the run sweeps over other than two axes.
    """
    analysis = analysis_of(source)
    axes = swept_axes(analysis)
    if axes is None:
        raise ValueError("a map needs a sweep over two axes")
    across, up = axes
    cells = _cells(analysis, axes, panel)
    by_memory = is_memory_bound(analysis)
    unit = "B/s" if by_memory else "FLOP/s"
    order = {axis: sorted(cells[axis].unique().tolist()) for axis in axes}
    base = alt.Chart(cells).encode(
        x=alt.X(f"{across}:O", title=across, sort=order[across], axis=alt.Axis(labelAngle=0)),
        y=alt.Y(f"{up}:O", title=up, sort=order[up][::-1]),
    )
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in TOOLTIPS.items()]
    legend = alt.Legend(title=None, orient="top", labelExpr=si_label(unit), gradientLength=300, tickCount=4)
    color = alt.Color("value:Q", scale=alt.Scale(scheme="blues", zero=True), legend=legend)
    dark = 0.55  # of the highest rate: from here up the words on a cell are light
    light = alt.expr(f"datum.value > {dark * max(cells['value'], default=1.0)} ? '#ffffff' : '#0f151d'")
    layers = [
        base.mark_rect(stroke="#ffffff", strokeWidth=1).encode(color=color, tooltip=words),
        base.mark_text(fontSize=12, dy=-7, color=light, tooltip=None).encode(text=alt.Text("rate:N")),
        base.mark_text(fontSize=10, dy=8, color=light, tooltip=None).encode(text=alt.Text("line:N")),
    ]
    for index, layer in enumerate(layers):
        layer.name = f"layer_{index}"
    return alt.LayerChart(layer=layers, width="container", height=440, description=_described(cells, axes))


def _described(cells: pd.DataFrame, axes: tuple[str, str]) -> str:
    what = f"Highest rate by {axes[0]} and {axes[1]}"
    if cells.empty:
        return f"{what}: nothing to draw yet."
    best = max(cells.to_dict("records"), key=lambda row: float(row["value"]))
    where = ", ".join(f"{axis} = {best[axis]:,}" for axis in axes)
    return f"{what}, {len(cells)} shapes; the highest is {best['rate']} at {where}."


TOOLTIPS = {
    "shape": "Shape",
    "rate": "Highest rate",
    "line": "Reached by",
    "time": "Median time",
    "share": "Share of peak",
}


def _cells(analysis: RunAnalysis, axes: tuple[str, str], panel: str | Lines | None) -> pd.DataFrame:
    by_memory = is_memory_bound(analysis)
    best: dict[object, tuple[float, AnalyzedResult]] = {}
    for analyzed in analysis.results:
        rate = analyzed.bytes_per_s if by_memory else analyzed.flop_per_s
        if not rate or not is_ranked(analyzed.result) or not _is_in(analyzed, analysis, panel):
            continue
        if rate > best.get(analyzed.case.shape, (0.0, analyzed))[0]:
            best[analyzed.case.shape] = (rate, analyzed)
    rows = [
        {
            **{axis: analyzed.case.shape[axis] for axis in axes},
            "value": rate,
            "shape": str(analyzed.case.shape),
            "rate": format_bytes_per_s(rate) if by_memory else format_flop_per_s(rate),
            "line": f"{analyzed.case.implementation} {analyzed.case.dtype}",
            "time": format_seconds(analyzed.median_s),
            "share": format_percent(analyzed.bandwidth_utilization if by_memory else analyzed.mfu),
        }
        for rate, analyzed in best.values()
    ]
    return pd.DataFrame(rows, columns=[*axes, "value", *TOOLTIPS])


def _is_in(analyzed: AnalyzedResult, analysis: RunAnalysis, panel: str | Lines | None) -> bool:
    if panel is None or isinstance(panel, str):
        return panel in (None, analyzed.case.dtype)
    return (series_name(series_of(analyzed), analysis.shown), analyzed.case.dtype) in panel
