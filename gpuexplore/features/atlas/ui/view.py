"""The atlas on a page: the chart whose points name their source, what it shows, and its points in a table."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import streamlit as st

from gpuexplore.analysis.prediction import CALLS
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.analysis.what_if.summary import named_numbers
from gpuexplore.analysis.what_if.what_if import Known
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Origin, Result, Shape
from gpuexplore.core.once import once
from gpuexplore.core.units import format_energy, format_interval, format_seconds
from gpuexplore.features.atlas.analysis import measured_operations, points
from gpuexplore.features.atlas.analysis.which_gpu import ORDERS, GpuChoice, ranked, usual_devices, which_gpu
from gpuexplore.features.atlas.chart import PICKED, atlas, shown_at, source_label
from gpuexplore.features.atlas.ui.picked import NAMES, POINT, AtlasChoice, AtlasFacts, calibration, href_of
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.recorded import recorded_results
from gpuexplore.ui import url_widgets
from gpuexplore.ui.link import parameters, write
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import DeviceResults, known_devices, measured_results
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import Spec, chart_of, show_spec
from gpuexplore.ui.shared.tables import show_table

KEY = "chart.atlas"
FIRST = "atlas.first"  # the session's key of the point that the link named when this chart was drawn first


def show_atlas(choice: AtlasChoice, facts: AtlasFacts) -> None:
    """Show the chart and what is to be known about it; a click on a point writes the point to the URL."""
    if not facts.points:
        st.info(_nothing(choice), icon=":material/info:")
    if not facts.points and not any(series.line for series in facts.series):
        return
    spec = chart_of(
        lambda: atlas(choice.operation, facts.series, facts.points, choice.show, at=facts.at),
        (facts, choice.show),
        key=KEY,
    )
    key = f"{KEY}.{choice.operation}.{choice.show}"
    event: Any = show_spec(_with_picked(spec, key), key=key, on_select="rerun")
    found = _followed(event)
    if found and st.session_state.get("atlas.seen") != (key, found):
        write(POINT, found)
    st.session_state["atlas.seen"] = (key, found)
    st.caption(" ".join(_sentences(choice, facts)))


def _sentences(choice: AtlasChoice, facts: AtlasFacts) -> list[str]:
    """Return notes on the chart, a sentence each."""
    found = facts.points
    drawn = [point for point in facts.points if shown_at(point, choice.show) is not None]
    published = [point for point in found if point.origin == "published"]
    names = dict.fromkeys(point.citation.name for point in published)
    said = []
    if published:
        said.append(f"Published by {plain(_listed(list(names)))}, not measured by gpuexplore.")
    if found:
        said.append("Click a point to see its source.")
    said.append(
        f"Dashed: predicted; calls are {plain(CALLS[choice.calls])}. Lines keep the proportions of "
        f"{shape_label(choice.shape)}, the dotted line: points of other shapes can lie off them."
    )
    if len(drawn) < len(found):
        said.append(f"{len(found) - len(drawn)} points are left out: a cache may have held their data.")
    if any((point.share or 0) > 1.05 for point in drawn):
        said.append("Above 100 %: clocks above the rated one, or an algorithm that needs fewer operations.")
    return said


def _nothing(choice: AtlasChoice) -> str:
    title = OPERATIONS[choice.operation].title
    dtypes = " or ".join(choice.dtypes)
    known = points(choice.operation)
    there = [
        f"{dtype} on {len({point.spec_key for point in known if point.dtype == dtype})} GPUs"
        for dtype in dict.fromkeys(point.dtype for point in known)
    ]
    measured = [OPERATIONS[name].title for name, count in measured_operations().items() if count]
    where = f"Measured: {_listed(there)}." if there else f"Measured operations: {_listed(measured)}."
    return f"{title} in {dtypes} was not measured on these GPUs: only predictions are drawn. {where}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def _with_picked(spec: Spec, key: str) -> Spec:
    """Return the chart with the point selected that the link named when the session drew this chart first."""
    first: dict[str, str] = st.session_state.setdefault(FIRST, {})
    named = first.setdefault(key, parameters().get(POINT, ""))
    if not named:
        return spec
    selected = [{**each, "value": [{"id": named}]} if each["name"] == PICKED else each for each in spec["params"]]
    return {**spec, "params": selected}


def _followed(event: Any) -> str | None:
    """Return what a link calls the point that was clicked; None without a click on one."""
    return next((each["id"] for each in (event.get("selection", {}).get(PICKED) or []) if each.get("id")), None)


def show_points(facts: AtlasFacts) -> None:
    """Show every measured point that is drawn in a table, on a click."""
    count = len(facts.points)
    if not count:
        return
    table = st.expander(
        f"Measured: {count} points in a table, each with its source",
        icon=":material/table:",
        on_change="rerun",
        key="atlas.table",
    )
    if not table.open:
        return
    with table:
        show_table(
            lambda: [
                {
                    "GPU": point.device.name,
                    "Dtype": point.dtype,
                    "Shape": shape_label(point.shape),
                    "Time": point.time_s,
                    "Compute rate": point.rate if point.is_product else None,
                    "Memory rate": None if point.is_product else point.rate,
                    "Of the peak": point.share,
                    "From": source_label(point),
                    "Source": href_of(point),
                    "Licence": point.citation.licence,
                    "Timed": point.conditions,
                }
                for point in facts.points
            ],
            facts,
            {"Time": "s", "Compute rate": "FLOP/s", "Memory rate": "B/s", "Of the peak": "%"},
            alt=f"Table of {count} measured points with time, rate, share of the peak and source",
            config={
                "Source": st.column_config.LinkColumn(display_text="open"),
                "Of the peak": st.column_config.NumberColumn(
                    help="Share of the compute peak, or of the memory bandwidth where that is the limit"
                ),
            },
        )


# Which GPU for the shape in question: its time, energy and price on every GPU that was measured or is rented out.


COST = "US$ per million calls"
EXAMPLE = "h100-sxm5-80gb:2.50,t4:0.35"
LABELS: Mapping[str, str] = MappingProxyType(
    {"time": "Time", "energy": "Energy", "memory": "Memory", "price": "Price of a call"}
)
GPUS: Shared[tuple[GpuChoice, ...]] = Shared(100)  # for one call, in the order of the table of accelerators


def show_which(choice: AtlasChoice) -> None:
    """Draw the prices that can be entered, a sentence on the best GPUs, and the table of all of them."""
    title = operation_named(choice.operation).title
    st.subheader("Which GPU suits this call", anchor="which")
    st.caption(
        f"{title}, {shape_label(choice.shape)}, in {choice.dtypes[0]}: the shape and the first dtype chosen above."
    )
    left, right = st.columns([2, 3], gap="medium")
    with left:
        by = url_widgets.segments("Best first by", "by", list(ORDERS), shown=LABELS.__getitem__)
    with right:
        prices = _prices()
    known = tuple(measured_results(device) for device in known_devices() if device.kind != "cpu")
    key = (choice.operation, choice.shape, choice.dtypes[0], choice.calls, tuple(prices.items()), known)
    found = GPUS.get(key, lambda: _gpus_for(choice, prices, known))
    order = ranked(found, by)
    st.markdown(_best_words(found))
    show_table(
        lambda: [_choice_row(each) for each in order],
        ("which", key, by),
        {"Time": "s", "Energy": "J", "Memory": "B"},
        alt=f"Table of {len(order)} GPUs with time, energy, memory and price, ordered by {LABELS[by].lower()}",
        config=_choice_columns(),
    )
    st.caption(
        "Times are published ones where they were measured with the chosen kind of calls, or where launch overhead is "
        "negligible; else predictions. Energy: time at the board's power limit, an upper bound. Listed prices: US "
        "dollars per GPU, on demand, on the day they were read."
    )


def _prices() -> dict[str, float]:
    typed = url_widgets.text(
        "Your prices per hour",
        "price",
        "",
        help=f"Per GPU key, in US dollars, instead of the listed prices. Like `{EXAMPLE}`.",
        placeholder=EXAMPLE,
    )
    found, problems = named_numbers("price", typed, list(NAMES), EXAMPLE)
    for problem in problems:
        url_widgets.show_problem(InvalidInput(problem))
    return found


def _gpus_for(
    choice: AtlasChoice, prices: Mapping[str, float], known: tuple[DeviceResults, ...]
) -> tuple[GpuChoice, ...]:
    known_facts = Known(
        calibration=calibration(),
        measured=tuple(result for device in known for _, result in reversed(device.found)),
        recorded=_recorded().get(choice.shape, ()),
        prices_per_hour=prices,
        calls=choice.calls,
    )
    return which_gpu(choice.operation, choice.shape, choice.dtypes[0], devices=usual_devices(), known=known_facts)


@once
def _recorded() -> Mapping[Shape, Sequence[Result]]:
    """Return recorded results by their shape: those of others do not count."""
    found: dict[Shape, list[Result]] = {}
    for _, result in recorded_results():
        found.setdefault(result.case.shape, []).append(result)
    return found


def _best_words(choices: tuple[GpuChoice, ...]) -> str:
    """Return which GPU is fastest, takes least energy and costs least, as Markdown; what is unknown is left out."""
    said = []
    for by, what in (("time", "Fastest"), ("energy", "Least energy"), ("price", "Cheapest")):
        best = ranked(choices, by)[0] if choices else None
        if best and ORDERS[by](best) is not None and best.found.fits is not False:  # type: ignore[index]
            said.append(f"{what}: **{plain(best.device.name)}**, {_figure(best, by)} ({_origin(best)})")
    return ". ".join(said) + "." if said else "No time of this call is known on any GPU."


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
        "Price source": f"{listed.provider}, {listed.read_on}" if listed else _entered(choice),
        "Price list": listed.page if listed else None,
        "Source": href_of(choice.point) if choice.point else None,
    }


def _entered(choice: GpuChoice) -> str | None:
    return "entered" if choice.price_per_hour else None


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
