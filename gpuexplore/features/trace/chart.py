"""Time of a trace by operation: a bar for each operation, coloured by its kind."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import pandas as pd

from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.units import format_percent, format_seconds
from gpuexplore.features.trace.analysis.table import TraceRow, TraceTable

MOST_BARS = 12  # the others are one bar
OF_NO_KIND = "other"


class _Bar(NamedTuple):
    """The calls of one operation, whatever their shapes."""

    operation: str
    kind: str
    time_s: float
    share: float


def time_by_operation(table: TraceTable) -> alt.LayerChart:
    """Return the share of the time that each operation took, the largest on top."""
    bars = _bars_of(table)
    rows = [(*bar, format_percent(bar.share), format_seconds(bar.time_s)) for bar in bars]
    frame = pd.DataFrame(rows, columns=[*_Bar._fields, "label", "shown"])
    scale = alt.Scale(domain=[0, 1.15 * max((bar.share for bar in bars), default=1.0)], nice=False)
    base = alt.Chart(frame).encode(
        x=alt.X("share:Q", title=_title(table), scale=scale, axis=alt.Axis(format=".0%", tickCount=6)),
        y=alt.Y(
            "operation:N",
            title=None,
            sort=list(frame["operation"]),
            axis=alt.Axis(labelLimit=260, labelOverlap=False),
        ),
    )
    kinds = sorted(dict.fromkeys(frame["kind"]), key=lambda kind: kind == OF_NO_KIND)  # the others last
    legend = alt.Legend(title=None, orient="top", columns=3)
    drawn = base.mark_bar(height={"band": 0.6}).encode(
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds), legend=legend),
        tooltip=[
            alt.Tooltip("operation:N", title="Operation"),
            alt.Tooltip("kind:N", title="Kind"),
            alt.Tooltip("shown:N", title="Time"),
            alt.Tooltip("label:N", title="Share"),
        ],
    )
    figures = ", ".join(f"{bar.operation} {format_percent(bar.share)}" for bar in bars)
    described = f"of {format_seconds(table.total_s)}: {figures or 'nothing took any'}."
    labels = base.mark_text(align="left", dx=5, fontSize=13, color=NEUTRAL).encode(text=alt.Text("label:N"))
    chart: alt.LayerChart = alt.LayerChart(layer=[drawn, labels]).properties(
        width="container", height=26 * len(bars) + 120, description=f"{_title(table)} by operation, {described}"
    )
    return chart


def _bars_of(table: TraceTable) -> Sequence[_Bar]:
    """Return the bars, the longest first; beyond MOST_BARS they are one."""
    groups: dict[str, list[TraceRow]] = defaultdict(list)
    for row in table.rows:
        if row.time_s:
            groups[row.operation].append(row)
    bars = [
        _Bar(name, rows[0].kind or OF_NO_KIND, sum(row.time_s for row in rows), sum(row.share or 0.0 for row in rows))
        for name, rows in groups.items()
    ]
    bars.sort(key=lambda bar: -bar.time_s)
    rest = bars[MOST_BARS:]
    if not rest:
        return bars
    return [
        *bars[:MOST_BARS],
        _Bar("all others", OF_NO_KIND, sum(bar.time_s for bar in rest), sum(bar.share for bar in rest)),
    ]


def _title(table: TraceTable) -> str:
    return f"Share of the {'CPU' if table.busy_s is None else 'kernel'} time"
