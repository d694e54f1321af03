"""The chart of Explore: every line is in the browser, and parameters choose what of it is drawn, without the server."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from gpuexplore.charts import NEUTRAL, si_label
from gpuexplore.features.explore.facts import (
    GPUS,
    MAX_INTENSITY,
    MIN_INTENSITY,
    OFFERED,
    VIEWS,
    ExploreChoice,
    ExploreFacts,
    products,
    sizes,
)
from gpuexplore.operations import operation_named

MAX_BAND = 8.0  # from the lower to the upper end of an interval: a wider one is not drawn, but said
CHOSEN = "datum.op === op && datum.dtype === dtype && indexof(gpus, ',' + datum.key + ',') >= 0"
ROOFS = "view === 'roofline' && datum.dtype === dtype && indexof(gpus, ',' + datum.key + ',') >= 0"
IS_FLOP = "(view === 'roofline' || indexof(products, op) >= 0)"
TEXT = "luminance(background) > 0.5 ? '#1a2230' : '#f2f4f8'"
POINT_TOOLTIPS = {"case": "Measured", "words": "Time", "source": "Source"}
LINE_TOOLTIPS = {"device": "Predicted for", "n": "Size n", "words": "Time", "interval": "90 % interval"}
HEIGHT = 390
DECADES = [float(f"1e{exponent}") for exponent in range(-9, 18)]
STEPS = [step * decade for decade in DECADES for step in (1, 2, 5)]


def explore(facts: ExploreFacts, choice: ExploreChoice) -> alt.LayerChart:
    """Return the chart; its parameters `op`, `dtype`, `gpus`, `n` and `view` are inputs that the page's controls set.

    Args:
        facts: every line and point.
        choice: what is drawn first.
    """
    params = [
        alt.param(name=name, value=value, bind=alt.binding(input="text")) for name, value in choice.parameters.items()
    ]
    constants: dict[str, Any] = {"ticks": {name: list(sizes(name)) for name in OFFERED}, "products": products()}
    constants["names"] = {key: facts.name_of(key) for key in (*(device.id for device in facts.devices), *GPUS)}
    constants["extents"] = _extents(facts)
    params += [alt.param(name=name, value=value) for name, value in constants.items()]
    params += [alt.param(name=name, expr=end) for name, end in _ends(list(constants["names"])).items()]
    chart: alt.LayerChart = alt.LayerChart(layer=[*_lines(facts), *_points(facts), *_at_size(facts), *_titles()])
    return chart.add_params(*params).properties(
        width="container", height=HEIGHT, description=_described(facts, choice), padding={"top": 22, "bottom": 4}
    )


def _described(facts: ExploreFacts, choice: ExploreChoice) -> str:
    names = ", ".join(facts.name_of(key) for key in choice.keys)
    return (
        f"{operation_named(choice.operation).title}: time against size for {names}. Lines are predictions, bands their "
        "90 % intervals, points measured. The sentence above the chart says what it shows."
    )


def _placed(chart: alt.Chart, which: str = CHOSEN) -> alt.Chart:
    """Return a chart of the rows that are chosen, with what is drawn across and upwards."""
    rate = f"datum.{{}} ? ({IS_FLOP} ? datum.flops : datum.work) / datum.{{}} : null"
    return chart.transform_filter(which).transform_calculate(
        x="view === 'roofline' ? datum.intensity : datum.n",
        y=f"view === 'time' ? datum.time : {rate.format('time', 'time')}",
    )


def _worded(chart: alt.Chart) -> alt.Chart:
    """Return a chart with what tooltips say of a prediction."""
    time, low, high = (si_label("s").replace("datum.value", f"datum.{name}") for name in ("time", "low", "high"))
    return chart.transform_calculate(device="names[datum.key]", words=time, interval=f"{low} + ' to ' + {high}")


def _x() -> alt.X:
    axis = alt.Axis(
        values=alt.ExprRef("view === 'roofline' ? [0.1, 1, 10, 100, 1000] : ticks[op]"),
        labelExpr="view === 'roofline' ? format(datum.value, '~r') : datum.value >= 1e6 ? "
        "format(datum.value / 1048576, '~r') + ' Mi' : format(datum.value, ',')",
        labelOverlap="greedy",
        grid=False,
        labelFlush=12,
    )
    ends: Any = [
        alt.ExprRef(f"view === 'roofline' ? {MIN_INTENSITY} : ticks[op][0]"),
        alt.ExprRef(f"view === 'roofline' ? {MAX_INTENSITY} : ticks[op][length(ticks[op]) - 1]"),
    ]
    return alt.X("x:Q", title=None, axis=axis, scale=alt.Scale(type="log", nice=False, domain=ends, padding=10))


def _extents(facts: ExploreFacts) -> dict[str, list[float]]:
    """Return the least and the most that is drawn upwards in each view, by ``operation/dtype/device``.

    An axis that follows its data would warn in the console of every line that is not drawn.
    """
    drawn: dict[str, list[list[float]]] = {}
    for row in (*facts.lines.to_dict("records"), *facts.points.to_dict("records")):
        found = drawn.setdefault(f"{row['op']}/{row['dtype']}/{row['key']}", [[], [], []])
        unit = row["flops"] if row["op"] in products() else row["work"]
        for values, value in zip(found, (row["time"], unit / row["time"], row["flops"] / row["time"]), strict=True):
            values.append(value)
    for roof in facts.roofs.to_dict("records"):
        for about in (f"{name}/{roof['dtype']}/{roof['key']}" for name in OFFERED):
            drawn.setdefault(about, [[], [], []])[2].append(roof["rate"])
    return {
        about: [float(f"{end(values, default=1.0):.3g}") for values in found for end in (min, max)]
        for about, found in drawn.items()
    }


def _ends(keys: Sequence[str]) -> dict[str, str]:
    """Return the expressions of both ends of the axis upwards: of what is chosen, with a margin."""
    at = f"2 * indexof({list(VIEWS)}, view)"

    def end(function: str, place: str, none: str) -> str:
        known = (f"extents[op + '/' + dtype + '/{key}']" for key in keys)
        chosen = (
            f"indexof(gpus, ',{key},') >= 0 && {found} ? {found}[{at} + {place}] : {none}"
            for key, found in zip(keys, known, strict=True)
        )
        return f"{function}({', '.join(chosen)})"

    low = end("min", "0", "1e30")
    high = end("max", "1", "1e-30")
    return {"bottom": f"{low} < 1e30 ? 0.75 * {low} : 1e-6", "top": f"{high} > 1e-30 ? 1.4 * {high} : 1"}


def _y(field: str = "y") -> alt.Y:
    label = f"view === 'time' ? {si_label('s')} : {IS_FLOP} ? {si_label('FLOP/s')} : {si_label('B/s')}"
    ticks = f"domain('y')[1] > 200 * domain('y')[0] ? {DECADES} : {STEPS}"
    axis = alt.Axis(
        labelExpr=label, values=alt.ExprRef(ticks), labelOverlap="greedy", domain=False, ticks=False, minExtent=82
    )
    domain: Any = [alt.ExprRef("bottom"), alt.ExprRef("top")]
    return alt.Y(f"{field}:Q", title=None, axis=axis, scale=alt.Scale(type="log", nice=False, domain=domain))


def _color() -> alt.Color:
    return alt.Color("key:N", scale=alt.Scale(domain=list(GPUS)), legend=None)


def _lines(facts: ExploreFacts) -> list[alt.Chart]:
    """Return roofs, bands and predicted lines, those of this machine last and in the colour of text."""
    low, high = (
        f"view === 'time' ? datum.{time} : ({IS_FLOP} ? datum.flops : datum.work) / datum.{other}"
        for time, other in (("low", "high"), ("high", "low"))
    )
    rows = alt.Chart(facts.lines)
    bands = (
        _placed(rows, f"{CHOSEN} && datum.high <= {MAX_BAND} * datum.low")
        .transform_calculate(lower=low, upper=high)
        .mark_area(opacity=0.11, tooltip=None, aria=False, clip=True)
        .encode(x=_x(), y=_y("lower"), y2="upper:Q", color=_color())
    )
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in LINE_TOOLTIPS.items()]
    rows = _worded(rows)
    lines = _placed(rows, f"{CHOSEN} && !datum.here").mark_line(strokeWidth=2, clip=True)
    own = _placed(rows, f"{CHOSEN} && datum.here").mark_line(strokeWidth=3.5, color=alt.expr(TEXT), clip=True)
    roofs = alt.Chart(facts.roofs)
    roof = roofs.transform_filter(f"{ROOFS} && !datum.here").mark_line(strokeDash=[3, 3], strokeWidth=1.2, clip=True)
    own_roof = roofs.transform_filter(f"{ROOFS} && datum.here").mark_line(
        strokeDash=[3, 3], strokeWidth=1.6, color=alt.expr(TEXT), clip=True
    )
    placed = {"x": alt.X("intensity:Q"), "y": _y("rate")}
    return [
        bands,
        roof.encode(**placed, color=_color(), detail="key:N"),
        own_roof.encode(**placed, detail="key:N"),
        lines.encode(x=_x(), y=_y(), color=_color(), tooltip=words, order="n:Q"),
        own.encode(x=_x(), y=_y(), detail="key:N", tooltip=words, order="n:Q"),
    ]


def _points(facts: ExploreFacts) -> list[alt.Chart]:
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in POINT_TOOLTIPS.items()]
    style: dict[str, Any] = {"filled": True, "opacity": 0.85, "stroke": alt.expr("background"), "strokeWidth": 0.7}
    rows = alt.Chart(facts.points)
    others = _placed(rows, f"{CHOSEN} && !datum.here").mark_point(size=46, clip=True, **style)
    own = _placed(rows, f"{CHOSEN} && datum.here").mark_point(size=80, color=alt.expr(TEXT), clip=True, **style)
    return [
        others.encode(x=_x(), y=_y(), color=_color(), tooltip=words),
        own.encode(x=_x(), y=_y(), tooltip=words),
    ]


def _at_size(facts: ExploreFacts) -> list[alt.Chart]:
    """Return the rule at the chosen size, and a ring on every line there."""
    at = f"{CHOSEN} && datum.n === toNumber(n)"
    rule = (
        _placed(alt.Chart(facts.lines), f"{at} && view !== 'roofline'")
        .transform_aggregate(x="max(x)", groupby=[])
        .mark_rule(color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.2)
        .encode(x=_x())
    )
    ring: dict[str, Any] = {"filled": True, "size": 120, "strokeWidth": 2.5, "fill": alt.expr("background")}
    others = _placed(alt.Chart(facts.lines), f"{at} && !datum.here").mark_point(opacity=1, **ring)
    own = _placed(alt.Chart(facts.lines), f"{at} && datum.here").mark_point(stroke=alt.expr(TEXT), opacity=1, **ring)
    return [
        rule,
        others.encode(x=_x(), y=_y(), stroke=alt.Stroke("key:N", scale=alt.Scale(domain=list(GPUS)), legend=None)),
        own.encode(x=_x(), y=_y()),
    ]


def _titles() -> list[alt.Chart]:
    """Return what is drawn upwards, over the axis, and across, at its end: both follow the view."""
    one = alt.Chart(alt.InlineData(values=[{"drawn": True}]))
    upwards = (
        "view === 'time' ? 'Time of a call, lower is better' : "
        f"{IS_FLOP} ? 'Compute rate, higher is better' : 'Memory rate, higher is better'"
    )
    across = "view === 'roofline' ? 'FLOPs a byte' : 'Size n'"
    style: dict[str, Any] = {"fontSize": 12.5, "color": NEUTRAL, "aria": False}
    return [
        one.mark_text(align="left", baseline="bottom", x=0, y=-8, text=alt.ExprRef(upwards), **style),
        one.mark_text(
            align="right", baseline="bottom", x="width", y=alt.expr("height - 8"), text=alt.ExprRef(across), **style
        ),
    ]
