"""The time of a trace by operation: a bar for each operation, coloured by its kind."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import pandas as pd

from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.units import format_percent, format_seconds
from gpuexplore.features.trace.analysis import TraceRow, TraceTable

MOST_BARS = 12  # the others are one bar
OTHERS, OF_NO_KIND = "all others", "other"
BAR_HEIGHT = 26  # pixels, with its gap
AROUND = 120  # pixels of axis and legend
NAME_WIDTH = 260  # pixels of an operation's name
MARGIN = 1.15  # right of the longest bar, for its label


class Bar(NamedTuple):
    """The calls of one operation, whatever their shapes."""

    operation: str
    kind: str
    time_s: float
    share: float


def time_by_operation(table: TraceTable) -> alt.LayerChart:
    """Return the share of the time that each operation took, the largest on top."""
    bars = bars_of(table)
    rows = [(*bar, format_percent(bar.share), format_seconds(bar.time_s)) for bar in bars]
    frame = pd.DataFrame(rows, columns=[*Bar._fields, "label", "shown"])
    scale = alt.Scale(domain=[0, MARGIN * max((bar.share for bar in bars), default=1.0)], nice=False)
    base = alt.Chart(frame).encode(
        x=alt.X("share:Q", title=_title(table), scale=scale, axis=alt.Axis(format=".0%", tickCount=6)),
        y=alt.Y(
            "operation:N",
            title=None,
            sort=list(frame["operation"]),
            axis=alt.Axis(labelLimit=NAME_WIDTH, labelOverlap=False),
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
    labels = base.mark_text(align="left", dx=5, fontSize=13, color=NEUTRAL).encode(text=alt.Text("label:N"))
    chart: alt.LayerChart = alt.LayerChart(layer=[drawn, labels]).properties(
        width="container", height=BAR_HEIGHT * len(bars) + AROUND, description=_describe_trace(table)
    )
    return chart


def _describe_trace(table: TraceTable) -> str:
    """Return the alternative text: the share of each operation that has a bar."""
    figures = ", ".join(f"{bar.operation} {format_percent(bar.share)}" for bar in bars_of(table))
    return f"{_title(table)} by operation, of {format_seconds(table.total_s)}: {figures or 'nothing took any'}."


def bars_of(table: TraceTable) -> Sequence[Bar]:
    """Return the bars, the longest first; beyond MOST_BARS they are one."""
    groups: dict[str, list[TraceRow]] = defaultdict(list)
    for row in table.rows:
        if row.time_s:
            groups[row.operation].append(row)
    bars = [_bar(name, rows[0].kind or OF_NO_KIND, rows) for name, rows in groups.items()]
    bars.sort(key=lambda bar: -bar.time_s)
    kept, rest = bars[:MOST_BARS], bars[MOST_BARS:]
    if not rest:
        return kept
    return [*kept, Bar(OTHERS, OF_NO_KIND, sum(bar.time_s for bar in rest), sum(bar.share for bar in rest))]


def _bar(operation: str, kind: str, rows: Sequence[TraceRow]) -> Bar:
    return Bar(operation, kind, sum(row.time_s for row in rows), sum(row.share or 0.0 for row in rows))


def _title(table: TraceTable) -> str:
    return f"Share of the {'CPU' if table.busy_s is None else 'kernel'} time"
