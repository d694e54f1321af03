"""Two runs: the ratio of each case's times with its interval, on one log axis; left of 1 is faster."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.compare import ComparedCase, RunComparison
from gpuexplore.analysis.comparison_texts import INCONCLUSIVE
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.charts.axes import powers_of_two
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.units import format_interval, format_ratio, format_seconds


def comparison(found: RunComparison) -> alt.LayerChart:
    """Return the chart of the cases that have a ratio, the largest change first; of many the largest changes."""
    rows = _rows(found)
    title = "Time after / before: left is faster"
    order = rows["case"].tolist()
    margin = 1.05
    domain = [min([*rows["low"], 1 / margin]) / margin, max([*rows["high"], margin]) * margin]
    fine = (0.8, 0.9, 1.1, 1.25)  # next to powers of two
    ticks = [tick for tick in (*powers_of_two(domain), *fine) if domain[0] <= tick <= domain[1]]
    x = alt.X(
        "ratio:Q",
        title=title,
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=sorted(set(ticks)), labelExpr="format(datum.value, '.3~r') + '×'"),
    )
    y = alt.Y("case:N", sort=order, title=None, axis=alt.Axis(labelLimit=170, labelOverlap=False))
    changes = ("faster", "slower", "same", INCONCLUSIVE)
    colors = ("#00816e", "#c0392b", "#5b7fb5", NEUTRAL)
    scale = alt.Scale(domain=list(changes), range=list(colors))
    legend = alt.Legend(
        title=None, orient="top", columns=2, values=[name for name in changes if name in set(rows["change"])]
    )
    words = [alt.Tooltip(f"{name}:N", title=heading) for name, heading in WORDS.items()]
    base = alt.Chart(rows).encode(y=y, color=alt.Color("change:N", scale=scale, legend=legend))
    rule = alt.Chart(alt.InlineData(values=[{"one": 1}])).mark_rule(color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5)
    layers = [
        rule.encode(x=alt.X("one:Q")),
        base.mark_rule(strokeWidth=2, tooltip=None).encode(x=alt.X("low:Q", title=title), x2=alt.X2("high:Q")),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x, tooltip=words),
    ]
    for index, layer in enumerate(layers):
        layer.name = f"layer_{index}"
    row_height = 25  # pixels of a case
    frame_height = 125  # pixels of legend, axis and title
    height = frame_height + row_height * max(1, len(order))
    description = (
        f"Ratio of times of {found.after.title} over {found.before.title}, with 95 % intervals. {found.headline}"
    )
    return alt.LayerChart(layer=layers, width="container", height=height, description=description)


WORDS = {
    "case": "Case",
    "before": "Before",
    "after": "After",
    "words": "Ratio",
    "interval": "95 % interval",
    "change": "",
}


def _name(each: ComparedCase) -> str:
    """Return a case in as few words as fit an axis on a phone: ``torch fp32 384``."""
    case = each.case
    size = next(iter(case.shape)) if len(set(case.shape)) == 1 else shape_label(case.shape)
    return f"{case.implementation} {case.dtype} {size}"


def _rows(found: RunComparison) -> pd.DataFrame:
    one_device = len({each.case.device for each in found.cases}) == 1
    rows = [
        {
            "case": _name(each) if one_device else f"{_name(each)} on {each.case.device}",
            "ratio": each.ratio.value,
            "low": (each.ratio.interval or (each.ratio.value,))[0],
            "high": (each.ratio.interval or (each.ratio.value,))[-1],
            "change": each.change or INCONCLUSIVE,
            "before": format_seconds(each.before.measurement.median_s if each.before.measurement else None),
            "after": format_seconds(each.after.measurement.median_s if each.after.measurement else None),
            "words": format_ratio(each.ratio.value),
            "interval": format_interval(each.ratio.interval, format_ratio) if each.ratio.interval else "unknown",
        }
        for each in sorted(found.cases, key=lambda each: -(each.ratio.value if each.ratio else 0.0))
        if each.ratio
    ]
    most = 60  # cases: more are in the table
    shown = rows if len(rows) <= most else [*rows[: most // 2], *rows[-most // 2 :]]
    return pd.DataFrame(
        shown, columns=["case", "ratio", "low", "high", "change", "before", "after", "words", "interval"]
    )
