"""The wrong value of a mistake and the right one, each with its interval, on one axis."""

import altair as alt
import pandas as pd

from gpuexplore.charts.axes import LABEL_LIMIT, WIDE, log_ticks, si_label, x_value
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.units import format_interval
from gpuexplore.features.mistakes.catalog.contract import UNITS, MistakeObservation, Quantity

SI_UNITS: dict[Quantity, str] = {"time": "s", "compute rate": "FLOP/s", "memory rate": "B/s"}


def wrong_and_right(observation: MistakeObservation) -> alt.LayerChart:
    """Return a point for each of the two ways, with its 95 % interval and its value in words."""
    frame = _frame(observation)
    base = alt.Chart(frame).encode(
        y=alt.Y(
            "way:N", sort=["Wrong", "Right"], title=None, scale=alt.Scale(padding=0.6), axis=alt.Axis(labelFontSize=13)
        )
    )
    x = _axis(observation, frame)
    intervals = base.mark_rule(color=NEUTRAL, strokeWidth=3, opacity=0.6).encode(x=x, x2=alt.X2("high:Q"))
    shape = alt.Shape("way:N", scale=alt.Scale(domain=["Wrong", "Right"], range=["cross", "circle"]), legend=None)
    points = base.mark_point(filled=True, size=130, opacity=1).encode(
        x=alt.X("value:Q"), shape=shape, tooltip=[alt.Tooltip(f"{name}:N") for name in ("way", "shown", "interval")]
    )
    words = base.mark_text(dy=-17, fontSize=13, color=NEUTRAL).encode(x=alt.X("value:Q"), text=alt.Text("shown:N"))
    unknown = base.mark_text(align="left", fontSize=13, color=NEUTRAL).encode(x=x_value(6), text=alt.Text("unknown:N"))
    sized: alt.LayerChart = alt.LayerChart(layer=[intervals, points, words, unknown]).properties(
        width="container", height=2 * 58 + 56, description=_described_observation(observation, frame)
    )
    return sized


def _described_observation(observation: MistakeObservation, frame: pd.DataFrame) -> str:
    """Return the alternative text."""
    intervals = frame["interval"].map(lambda interval: f", 95 % interval {interval}" if interval else "")
    said = "; ".join(frame["way"].str.lower() + " " + frame["shown"] + intervals)
    return f"{_title(observation)} of {observation.what}, {observation.origin}: {said}."


def _frame(observation: MistakeObservation) -> pd.DataFrame:
    rows = []
    for way, reading in (("Wrong", observation.wrong), ("Right", observation.right)):
        low, high = reading.ci95 or (reading.value, reading.value)
        interval = format_interval(reading.ci95, observation.format) if reading.ci95 else ""
        shown = observation.words(reading)
        rows.append((way, reading.value, low, high, shown, interval, shown if reading.value is None else ""))
    return pd.DataFrame(rows, columns=["way", "value", "low", "high", "shown", "interval", "unknown"])


def _axis(observation: MistakeObservation, frame: pd.DataFrame) -> alt.X:
    values = [value for name in ("low", "value", "high") for value in frame[name].dropna()]
    labels: dict[Quantity, str] = {
        "share": "format(datum.value, '.3~%')",
        "error": "datum.value == 0 ? '0' : format(datum.value, '.1~e')",
        "count": "format(datum.value, ',')",
        "sum": "format(datum.value, ',')",
        "ratio": "format(datum.value, '.3~r') + '×'",
    }
    unit = SI_UNITS.get(observation.quantity)
    label = si_label(unit) if unit else labels[observation.quantity]
    title = _title(observation)
    if values and min(values) > 0 and max(values) / min(values) > WIDE:
        ticks = log_ticks(values)
        if len(ticks) > 7:
            ticks = [tick for tick in ticks if f"{tick:e}".startswith("1.000")]  # powers of ten
        scale = alt.Scale(type="log", nice=False, domain=[min(values) / 1.6, max(values) * 1.6])
        axis = alt.Axis(values=ticks, labelExpr=label, labelOverlap="greedy", labelLimit=LABEL_LIMIT)
        return alt.X("low:Q", title=title, axis=axis, scale=scale)
    scale = alt.Scale(domain=[0, 1.15 * max([*values, 1e-300])], nice=False)
    axis = alt.Axis(labelExpr=label, tickCount=5, labelLimit=LABEL_LIMIT, labelOverlap="greedy")
    return alt.X("low:Q", title=title, axis=axis, scale=scale)


def _title(observation: MistakeObservation) -> str:
    """Return what the axis measures, with the unit where its labels do not carry it."""
    name = "Relative error" if observation.quantity == "error" else observation.quantity.capitalize()
    return f"{name} ({UNITS[observation.quantity]})" if observation.quantity in SI_UNITS else name
