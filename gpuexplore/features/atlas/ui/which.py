"""Which GPU for the shape in question: its time, energy and price on every GPU that was measured or is rented out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import streamlit as st

from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.analysis.what_if.summary import named_numbers
from gpuexplore.analysis.what_if.what_if import Known
from gpuexplore.errors import InvalidInput
from gpuexplore.features.atlas.analysis import ORDERS, Choice, ranked, usual_devices, which_gpu
from gpuexplore.features.atlas.ui.picked import NAMES, AtlasChoice, calibration, href_of
from gpuexplore.model import Origin, Result, Shape
from gpuexplore.once import once
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results
from gpuexplore.ui import url_widgets
from gpuexplore.ui.known_results import Measured, measured_results
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.units import format_energy, format_interval, format_seconds

COST = "US$ per million calls"
EXAMPLE = "h100-sxm5-80gb:2.50,t4:0.35"
LABELS: Mapping[str, str] = MappingProxyType(
    {"time": "Time", "energy": "Energy", "memory": "Memory", "price": "Price of a call"}
)
UNITS = {"Time": "s", "Energy": "J", "Memory": "B"}
FITS: Mapping[bool | None, str] = MappingProxyType({True: "fits", False: "does not fit", None: "may not fit"})


@dataclass(frozen=True, slots=True, eq=False)
class Suits:
    """GPUs for one call, in the order of the table of accelerators: one object for all who ask the same."""

    choices: tuple[Choice, ...]


SUITS: Shared[Suits] = Shared(100)


def show_which(choice: AtlasChoice) -> None:
    """Draw the prices that can be entered, a sentence on the best GPUs, and the table of all of them."""
    title = operation_named(choice.operation).title
    st.subheader("Which GPU for this", anchor="which")
    st.caption(
        f"{title}, {shape_label(choice.shape)}, in {choice.dtypes[0]}: the shape and the first dtype from above."
    )
    left, right = st.columns([2, 3], gap="medium")
    with left:
        by = url_widgets.segments("Best first by", "by", list(ORDERS), shown=LABELS.__getitem__)
    with right:
        prices = _prices()
    known = tuple(measured_results(device) for device in known_devices() if device.kind != "cpu")
    key = (choice.operation, choice.shape, choice.dtypes[0], choice.calls, tuple(prices.items()), known)
    suits = SUITS.get(key, lambda: _suits(choice, prices, known))
    order = ranked(suits.choices, by)
    st.markdown(best_words(suits.choices))
    show_table(
        lambda: [_row(each) for each in order],
        (suits, by),
        UNITS,
        alt=f"Table of {len(order)} GPUs with time, energy, memory and price, ordered by {LABELS[by].lower()}",
        config=_columns(),
    )
    st.caption(
        "Times that others published count where their calls are of the chosen kind, or a launch is no great part of "
        "them; else predictions. Energy: at the board's power limit, an upper bound. Listed prices: US dollars on "
        "demand, one GPU, the day they were read."
    )


def _prices() -> dict[str, float]:
    typed = url_widgets.text(
        "Your prices per hour",
        "price",
        "",
        help=f"By the GPU's key, in US dollars, instead of the listed ones. Like `{EXAMPLE}`.",
        placeholder=EXAMPLE,
    )
    found, problems = named_numbers("price", typed, list(NAMES), EXAMPLE)
    for problem in problems:
        url_widgets.show_problem(InvalidInput(problem))
    return found


def _suits(choice: AtlasChoice, prices: Mapping[str, float], known: tuple[Measured, ...]) -> Suits:
    beside = Known(
        calibration=calibration(),
        measured=tuple(result for device in known for _, result in reversed(device.found)),
        recorded=_recorded().get(choice.shape, ()),
        prices_per_hour=prices,
        calls=choice.calls,
    )
    found = which_gpu(choice.operation, choice.shape, choice.dtypes[0], devices=usual_devices(), known=beside)
    return Suits(found)


@once
def _recorded() -> Mapping[Shape, Sequence[Result]]:
    """Return recorded results by their shape: those of others do not count."""
    found: dict[Shape, list[Result]] = {}
    for _, result in recorded_results():
        found.setdefault(result.case.shape, []).append(result)
    return found


def best_words(choices: tuple[Choice, ...]) -> str:
    """Return which GPU is fastest, takes least energy and costs least, as Markdown; what is unknown is left out."""
    said = []
    for by, what in (("time", "Fastest"), ("energy", "Least energy"), ("price", "Cheapest")):
        best = ranked(choices, by)[0] if choices else None
        if best and ORDERS[by](best) is not None and best.found.fits is not False:  # type: ignore[index]
            said.append(f"{what}: **{plain(best.device.name)}**, {_figure(best, by)} ({_origin(best)})")
    return ". ".join(said) + "." if said else "No time of this call is known on any GPU."


def _figure(choice: Choice, by: str) -> str:
    if by == "energy":
        return f"{format_energy(choice.found.energy_j)} a call"
    if by == "price":
        return f"US\\$ {choice.cost_of_million or 0.0:.3g} per million calls"
    return format_seconds(choice.time.value if choice.time else None)


def _origin(choice: Choice) -> str:
    if choice.point:
        return f"published by {plain(choice.point.citation.name)}"
    return choice.found.origin.label if choice.found.origin else "unknown"


def _row(choice: Choice) -> dict[str, object]:
    found, time, listed = choice.found, choice.time, choice.listed
    predicted = found.origin is Origin.PREDICTED and time is not None
    return {
        "GPU": choice.device.name,
        "Time": time.value if time else None,
        "From": _origin(choice) if time else found.reason,
        "90 % interval": format_interval((time.low, time.high), format_seconds) if predicted and time else None,
        "Energy": found.energy_j,
        "Memory": choice.device.memory_bytes,
        "Fits": FITS[found.fits] if choice.device.memory_bytes else None,
        "US$ per hour": choice.price_per_hour,
        COST: choice.cost_of_million,
        "Price": f"{listed.provider}, {listed.read_on}" if listed else "entered" if choice.price_per_hour else None,
        "Prices": listed.page if listed else None,
        "Source": href_of(choice.point) if choice.point else None,
    }


def _columns() -> Mapping[str, Any]:
    text, number, link = st.column_config.TextColumn, st.column_config.NumberColumn, st.column_config.LinkColumn
    return {
        "GPU": text(pinned=True),
        "From": text(help="Who measured the time; or that it is predicted, then with its 90 % interval"),
        "Energy": number(help="Of a call, at the board's power limit: an upper bound"),
        "Memory": number(help="Of the GPU"),
        "Fits": text(help="Whether every array of the call fits the memory at once"),
        "US$ per hour": number(format="%.2f", help="On demand, without taxes"),
        COST: number(format="%.3g", help="At the price per hour"),
        "Price": text(help="Who asks it, and the day the list was read"),
        "Prices": link(display_text="open", help="The provider's list"),
        "Source": link(display_text="open", help="Where a published time is from"),
    }
