"""One time against several peaks: the share of each as a bar, so that a promise is compared with a datasheet."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.what_if.summary import EnteredResult
from gpuexplore.charts.axes import x_value
from gpuexplore.charts.palette import SCALE_OF_DTYPES
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.charts.what_if import AXIS_HEIGHT, ROW_HEIGHT
from gpuexplore.core.units import format_flop_per_s, format_percent

COLUMNS = ("row", "dtype", "against", "share", "said", "description")


def entered_shares(results: Sequence[EnteredResult]) -> alt.LayerChart:
    """Return a bar for each entered result and each peak it can be compared with; the line is 100 %."""
    frame = _frame(results)
    rows = list(frame["row"])
    y = alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(labels=False, ticks=False, domain=False))
    largest = max([1.0, *frame["share"]])
    x = alt.X(
        "share:Q",
        title="Share of the peak (MFU)",
        axis=alt.Axis(format=".0%", tickCount=5),
        scale=alt.Scale(domain=[0, largest * 1.15]),
    )
    base = alt.Chart(frame).encode(y=y)
    color = alt.Color("dtype:N", scale=SCALE_OF_DTYPES, legend=None)
    bars = base.mark_bar(size=13).encode(x=x, color=color)
    figures = base.mark_text(align="left", dx=6, color=NEUTRAL, fontSize=13).encode(x=x, text=alt.Text("said:N"))
    names = base.mark_text(align="left", dy=-15, color=NEUTRAL, fontSize=12.5).encode(
        x=x_value(0), text=alt.Text("description:N")
    )
    full = alt.Chart(alt.InlineData(values=[{"share": 1}])).mark_rule(color=NEUTRAL, strokeDash=[2, 3]).encode(x=x)
    chart: alt.LayerChart = alt.LayerChart(layer=[full, bars, figures, names]).properties(
        width="container", height=ROW_HEIGHT * max(1, len(rows)) + AXIS_HEIGHT, description=describe_entered(results)
    )
    return chart


def describe_entered(results: Sequence[EnteredResult]) -> str:
    """Return the alternative text of the chart of entered results."""
    said = [f"{itertuple.description} {itertuple.said}" for itertuple in _frame(results).itertuples()]
    return f"MFU against each peak: {'; '.join(said) or 'nothing to draw'}."


def _frame(results: Sequence[EnteredResult]) -> pd.DataFrame:
    rows = [row for entered in results for row in _rows(entered)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(entered: EnteredResult) -> list[tuple[object, ...]]:
    peak, published = entered.row.peak, entered.published
    found = (
        ("promised", entered.of_promised, "the advertised peak (entered)", entered.promised),
        ("peak", entered.of_peak, _peak_words(entered), peak.flop_per_s if peak else None),
        ("published", entered.of_published, "the best published result", published.flop_per_s if published else None),
    )
    return [
        (
            f"{entered.row.dtype} {against}",
            entered.row.dtype,
            against,
            share,
            format_percent(share),
            f"{entered.row.dtype} of {words}, {format_flop_per_s(rate)}",
        )
        for against, share, words, rate in found
        if share is not None
    ]


def _peak_words(entered: EnteredResult) -> str:
    """Return which peak it is; of an emulated format it is that of the format that does the arithmetic."""
    peak = entered.row.peak
    if peak is None:
        return "no known peak"
    other = f" of {peak.dtype}" if peak.dtype != entered.row.dtype else ""
    return f"the {PEAK_SOURCES[peak.kind].label}{other}"
