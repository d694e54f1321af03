"""Choice of a call and prices, the best GPUs for it in a sentence and a chart, and all of them in a table."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from gpuexplore.analysis.prediction import Calls
from gpuexplore.analysis.what_if.summary import named_numbers
from gpuexplore.analysis.what_if.what_if import Known
from gpuexplore.charts import NEUTRAL, log_ticks, si_label
from gpuexplore.core import (
    InvalidInput,
    Origin,
    Result,
    Shape,
    format_bytes,
    format_energy,
    format_interval,
    format_money,
    format_seconds,
    once,
)
from gpuexplore.features.atlas.analysis import points
from gpuexplore.features.atlas.analysis.which_gpu import ORDERS, GpuChoice, Order, ranked, usual_devices, which_gpu
from gpuexplore.features.atlas.chart import source_label
from gpuexplore.features.atlas.ui import picked
from gpuexplore.features.atlas.ui.picked import NAMES, calibration, href_of
from gpuexplore.recorded import recorded_results
from gpuexplore.ui import url_widgets
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import DeviceResults, known_devices, measured_results
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

MOST_RANKED = 15  # GPUs of the chart: all are in the table
_RANKED: Mapping[Order, tuple[str, str, Callable[[float], str]]] = MappingProxyType(  # axis, ticks, words
    {
        "time": ("Time of a call", si_label("s"), format_seconds),
        "energy": ("Energy of a call at the power limit", si_label("J"), format_energy),
        "memory": ("Memory", "format(datum.value / 1073741824, '~r') + ' GiB'", format_bytes),
        "price": ("US$ per million calls", "format(datum.value, ',~r')", format_money),
    }
)

COST = "US$ per million calls"
_LABELS: Mapping[str, str] = MappingProxyType(
    {"time": "Time", "energy": "Energy", "memory": "Memory", "price": "Price of a call"}
)
_GPUS: Shared[tuple[GpuChoice, ...]] = Shared(100)  # for one call, in the order of the table of accelerators


def _choose() -> tuple[str, str, Shape, Calls]:
    """Draw the choice of a call; return its operation, dtype and shape, and how calls follow one another."""
    left, middle, right, last = st.columns([4, 2, 5, 3], gap="medium")
    with left:
        operation = picked.choose_operation()
    with middle:
        usual = picked.usual_dtype(operation)
        dtypes = sorted(picked.dtypes_of(operation), key=lambda dtype: dtype != usual)
        dtype = url_widgets.select("Dtype", "dtype", dtypes)
    found = points(operation, dtypes=[dtype])
    with right:
        shape = picked.choose_shape(operation, picked.usual_shape(operation, found))
    with last:
        calls = picked.choose_calls(found)
    return operation, dtype, shape, calls


def show_which() -> None:
    """Draw the choice of a call and prices, a sentence on the best GPUs, a chart of the first, and a table of all."""
    said = st.container()
    with st.container(border=True), url_widgets.problems_in(st.container()):
        call = _choose()
        left, right = st.columns([2, 3], gap="medium")
        with left:
            named = url_widgets.segments("Best first by", "by", list(ORDERS), shown=_LABELS.__getitem__)
            by = next(name for name in ORDERS if name == named)
        with right:
            prices = _prices()
    known = tuple(measured_results(device) for device in known_devices() if device.kind != "cpu")
    key = (call, tuple(prices.items()), known)
    found = _GPUS.get(key, lambda: _gpus_for(call, prices, known))
    order = ranked(found, by)
    fitting = [each for each in order if each.found.fits is not False and ORDERS[by](each) is not None]
    with said:
        st.markdown(f"#### {_best_words(found)}")
        if fitting:
            show_chart(lambda: ranking(fitting, by), ("which", key, by), key="chart.which")
            st.caption(f"The first {min(MOST_RANKED, len(fitting))} of {len(fitting)} GPUs that hold the call.")
    show_table(
        lambda: [_choice_row(each) for each in order],
        ("which", key, by),
        {"Time": "s", "Energy": "J", "Memory": "B"},
        alt=f"Table of {len(order)} GPUs with time, energy, memory and price, ordered by {_LABELS[by].lower()}",
        config=_choice_columns(),
    )
    st.caption(
        "Filled: published or measured; hollow: predicted, with 90 % intervals. Published times count where they were "
        "measured with the chosen kind of calls, or where launch overhead is negligible. Energy: time at the board's "
        "power limit, an upper bound. Listed prices: US dollars per GPU, on demand, on the day they were read."
    )


def _prices() -> dict[str, float]:
    example = "h100-sxm5-80gb:2.50,t4:0.35"
    typed = url_widgets.text(
        "Your prices per hour",
        "price",
        "",
        help=f"Per GPU key, in US dollars, instead of the listed prices. Like `{example}`.",
        placeholder=example,
    )
    found, problems = named_numbers("price", typed, list(NAMES), example)
    for problem in problems:
        url_widgets.show_problem(InvalidInput(problem))
    return found


def _gpus_for(
    call: tuple[str, str, Shape, Calls], prices: Mapping[str, float], known: tuple[DeviceResults, ...]
) -> tuple[GpuChoice, ...]:
    operation, dtype, shape, calls = call
    known_facts = Known(
        calibration=calibration(),
        measured=tuple(result for device in known for _, result in reversed(device.found)),
        recorded=_recorded().get(shape, ()),
        prices_per_hour=prices,
        calls=calls,
    )
    return which_gpu(operation, shape, dtype, devices=usual_devices(), known=known_facts)


@once
def _recorded() -> Mapping[Shape, Sequence[Result]]:
    """Return recorded results by their shape: those of others do not count."""
    found: dict[Shape, list[Result]] = {}
    for _, result in recorded_results():
        found.setdefault(result.case.shape, []).append(result)
    return found


def _best_words(choices: tuple[GpuChoice, ...]) -> str:
    """Return which GPU is fastest, takes least energy and costs least, as Markdown; what is unknown is left out.

    Energies are upper bounds: where intervals overlap, none is called the least.
    """
    said = []
    first: dict[Order, str] = {"time": "Fastest", "energy": "Least energy", "price": "Cheapest"}
    for by, what in first.items():
        order = [each for each in ranked(choices, by) if each.found.fits is not False and ORDERS[by](each) is not None]
        if not order:
            continue
        rows = [_ranked(each, by, str) for each in order] if by == "energy" else []
        alike = [f"**{plain(row['gpu'])}**" for row in rows if row["low"] <= rows[0]["high"]]
        listed = [*alike[:2], *([f"{len(alike) - 2} more"] if len(alike) > 2 else [])]
        undecided = f"no significant difference between {', '.join(listed[:-1])} and {listed[-1]}" if alike[1:] else ""
        best = order[0]
        name = f"{undecided}, from" if undecided else f"**{plain(best.device.name)}**,"
        said.append(f"{what}: {name} {_figure(best, by)} ({_origin(best)})")
    if said:
        return f"{'. '.join(said)}."
    fits_none = any(choice.time for choice in choices)
    return "This call fits none of these GPUs." if fits_none else "No time of this call is known on any GPU."


def _figure(choice: GpuChoice, by: str) -> str:
    if by == "energy":
        return f"{format_energy(choice.found.energy_j)} per call"
    if by == "price":
        return f"US\\$ {choice.cost_of_million or 0.0:.3g} per million calls"
    return format_seconds(choice.time.value if choice.time else None)


def _origin(choice: GpuChoice) -> str:
    if choice.point:
        return f"published by {plain(choice.point.citation.name)}"
    return choice.found.origin.label if choice.found.origin else "unknown"


def _choice_row(choice: GpuChoice) -> dict[str, object]:
    found = choice.found
    time = choice.time
    listed = choice.listed
    fits = {True: "fits", False: "does not fit", None: "may not fit"}[found.fits]
    predicted = found.origin is Origin.PREDICTED and time is not None
    return {
        "GPU": choice.device.name,
        "Time": time.value if time else None,
        "From": _origin(choice) if time else found.reason,
        "90 % interval": format_interval((time.low, time.high), format_seconds) if predicted and time else None,
        "Energy": found.energy_j,
        "Memory": choice.device.memory_bytes,
        "Fits": fits if choice.device.memory_bytes else None,
        "US$ per hour": choice.price_per_hour,
        COST: choice.cost_of_million,
        "Price source": f"{listed.provider}, {listed.read_on}"
        if listed
        else "entered"
        if choice.price_per_hour
        else None,
        "Price list": listed.page if listed else None,
        "Source": href_of(choice.point) if choice.point else None,
    }


def _choice_columns() -> Mapping[str, Any]:
    text = st.column_config.TextColumn
    number = st.column_config.NumberColumn
    link = st.column_config.LinkColumn
    return {
        "GPU": text(pinned=True),
        "From": text(help="Source of the time; a predicted time has a 90 % interval"),
        "Energy": number(help="Energy of a call at the board's power limit: an upper bound"),
        "Memory": number(help="Memory of the GPU"),
        "Fits": text(help="Whether all arrays of the call fit into memory at once"),
        "US$ per hour": number(format="%.2f", help="On demand, without taxes"),
        COST: number(format="%.3g", help="Cost at the price per hour"),
        "Price source": text(help="Provider, and the day its price list was read"),
        "Price list": link(display_text="open", help="The provider's list"),
        "Source": link(display_text="open", help="Link to a published time"),
    }


# The best GPUs for a call, one below the other, by time, energy, memory or price.


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
    base = alt.Chart(frame).encode(
        y=alt.Y("gpu:N", sort=names, title=None, axis=alt.Axis(labelLimit=220, labelFlush=False))
    )
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


def _ranked(choice: GpuChoice, by: Order, words: Callable[[float], str]) -> dict[str, Any]:
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
