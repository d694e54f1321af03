"""The best GPUs for a call, one below the other, by time, energy, memory or price."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import altair as alt
import pandas as pd

from gpuexplore.charts.axes import log_ticks, si_label
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.model import Origin
from gpuexplore.core.units import format_bytes, format_energy, format_money, format_seconds
from gpuexplore.features.atlas.analysis.which_gpu import ORDERS, GpuChoice, Order
from gpuexplore.features.atlas.chart import source_label

MOST_RANKED = 15  # GPUs of the chart: all are in the table
_RANKED: Mapping[Order, tuple[str, str, Callable[[float], str]]] = MappingProxyType(  # axis, ticks, words
    {
        "time": ("Time of a call", si_label("s"), format_seconds),
        "energy": ("Energy of a call at the power limit", si_label("J"), format_energy),
        "memory": ("Memory", "format(datum.value / 1073741824, '~r') + ' GiB'", format_bytes),
        "price": ("US$ per million calls", "format(datum.value, ',~r')", format_money),
    }
)


def ranking(choices: Sequence[GpuChoice], by: Order) -> alt.LayerChart:
    """Return what a call takes on the first GPUs, the best at the top: hollow where predicted, with 90 % intervals."""
    axis, ticks, words = _RANKED[by]
    frame = pd.DataFrame([row for choice in choices if (row := _ranked(choice, by, words))][:MOST_RANKED])
    domain = [0.8 * frame["low"].min(), 3.0 * frame["high"].max()]  # room for the words
    marks = (
        log_ticks([domain[0] / 0.8, domain[1] / 3.0]) if by != "memory" else [2.0**30 * 2**step for step in range(12)]
    )
    scale = alt.Scale(type="log", domain=domain, nice=False)
    x = alt.X("value:Q", title=axis, scale=scale, axis=alt.Axis(values=marks, labelExpr=ticks))
    names = list(frame["gpu"])
    tooltip = [
        alt.Tooltip(f"{name}:N", title=title) for name, title in {"gpu": "GPU", "said": axis, "from": "From"}.items()
    ]
    base = alt.Chart(frame).encode(y=alt.Y("gpu:N", sort=names, title=None, axis=alt.Axis(labelLimit=220)))
    points = base.encode(x=x, tooltip=tooltip)
    is_predicted = f"datum.from == '{Origin.PREDICTED.label}'"
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.6, color=NEUTRAL, tooltip=None).encode(
            x=alt.X("low:Q", title=axis), x2="high:Q"
        ),
        points.transform_filter(f"!({is_predicted})").mark_point(filled=True, size=80, opacity=1),
        points.transform_filter(is_predicted).mark_point(size=70, strokeWidth=2.2),
        base.mark_text(align="left", dx=9, color=NEUTRAL).encode(x=alt.X("high:Q", title=axis), text="said:N"),
    ]
    chart: alt.LayerChart = alt.LayerChart(
        layer=layers,
        width="container",
        height=24 * len(names) + 50,
        description=f"{axis} on {len(names)} GPUs, the best first: {names[0]}, {frame['said'][0]}",
    )
    return chart


def _ranked(choice: GpuChoice, by: Order, words: Callable[[float], str]) -> dict[str, object]:
    """Return a row of the chart; nothing where what it is ranked by is unknown."""
    found = ORDERS[by](choice)
    if found is None:
        return {}
    value = abs(found) * (1e6 if by == "price" else 1.0)
    ends = (1.0, 1.0) if by == "memory" or choice.time is None else (choice.time.low, choice.time.high)
    typical = 1.0 if by == "memory" or choice.time is None else choice.time.value
    low, high = (value * end / typical for end in ends)  # energy and cost are as uncertain as the time
    origin = source_label(choice.point) if choice.point else choice.found.origin.label if choice.found.origin else ""
    if by == "memory":
        origin = "its datasheet"
    return {"gpu": choice.device.name, "value": value, "low": low, "high": high, "said": words(value), "from": origin}
