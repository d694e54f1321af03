"""Explore on a page: the controls, which are drawn in the browser, and the chart that they move."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core import Device, InvalidInput, Run, format_seconds, once, read_whole
from gpuexplore.features.explore.chart import explore
from gpuexplore.features.explore.facts import (
    FIRST_GPUS,
    GPUS,
    OFFERED,
    VIEWS,
    ExploreChoice,
    ExploreFacts,
    dtypes_of,
    facts,
    sizes,
)
from gpuexplore.jobs.server_settings import is_external
from gpuexplore.operations import operation_named
from gpuexplore.request import Request, resolve
from gpuexplore.shapes import split
from gpuexplore.ui.link import href, parameters
from gpuexplore.ui.markdown import plain, small
from gpuexplore.ui.run.state import show_what_ended, start
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.session import DeviceResults, known_devices, live_supervisor, measured_results
from gpuexplore.ui.shared import shared_values
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.url_widgets import show_problem

CHART = "explore_chart"  # the key of the chart's container, by which the controls find it
STYLE = f"""<style>
.st-key-{CHART} form.vega-bindings {{ display: none; }}
</style>"""  # the controls set the chart's parameters
FOLLOWS = " :material/hourglass_top: This CPU's line follows in a few seconds: its peaks are being measured."
MAX_SECONDS = 0.5  # a predicted call of what is measured here from this page
MAX_SIZES = 6


@once
def _controls() -> Any:
    folder = Path(__file__).parent
    html, css, js = ((folder / f"controls.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component("gpuexplore_explore", html=html, css=css, js=js)


def choose(devices: Sequence[Device]) -> ExploreChoice:
    """Return what the link asks for, with defaults for the rest; what it cannot mean is named."""
    given = parameters()
    operation = _one_of("op", given, tuple(OFFERED), "matmul")
    dtype = _one_of("dtype", given, dtypes_of(operation), "bf16")
    view = _one_of("view", given, tuple(VIEWS), "time")
    known = (*(device.id for device in devices), *GPUS)
    keys = split(given.get("gpus", "")) or [devices[0].id, *FIRST_GPUS]
    for key in keys:
        if key not in known:
            show_problem(InvalidInput.of("gpus", key, known))
    size = read_whole(given.get("n", ""))
    if size not in sizes(operation):
        if "n" in given:
            show_problem(InvalidInput.of("n", given["n"], map(str, sizes(operation))))
        size = OFFERED[operation].usual
    return ExploreChoice(operation, dtype, tuple(key for key in keys if key in known), size, view)


def _one_of(name: str, given: Mapping[str, str], accepted: Sequence[str], default: str) -> str:
    if name in given and given[name] not in accepted:
        show_problem(InvalidInput.of(name, given[name], accepted))
    return given[name] if given.get(name) in accepted else default


def facts_of(devices: Sequence[Device]) -> ExploreFacts:
    """Return what is drawn, from what comes with the app and what was measured on these devices."""
    return _facts(tuple(devices), tuple(measured_results(device) for device in devices))


@shared_values(2)
def _facts(devices: tuple[Device, ...], known: tuple[DeviceResults, ...]) -> ExploreFacts:
    return facts(devices, [result for each in known for _, result in reversed(each.found)])


def is_being_measured(devices: Sequence[Device]) -> bool:
    """Return whether the peaks of this CPU, and with them its line, follow in a few seconds."""
    supervisor = live_supervisor()
    is_starting = supervisor.state == "warming" if supervisor else not is_external()
    return is_starting and any(device.kind == "cpu" and not device.bandwidth for device in devices)


def show(devices: Sequence[Device], choice: ExploreChoice, *, follows: bool = False) -> None:
    """Draw the controls and the chart, and measure here what the button of the controls asks for.

    Args:
        devices: of this machine.
        choice: what is drawn first.
        follows: whether the line of this CPU was still missing when the page was drawn.
    """
    if follows and not is_being_measured(known_devices()):
        st.rerun()
    found = facts_of(devices)
    asked = _controls()(
        data=_data(found, choice, can_run=not st.context.is_embedded), key="explore", on_run_change=lambda: None
    ).run
    with st.container(key=CHART):
        st.html(STYLE)
        show_chart(lambda: explore(found, choice), (found, choice), key="chart.explore")
        st.markdown(
            small(
                "Lines: predicted. Bands: 90 % intervals. Points: measured here, or by others, as "
                f"tooltips say ([all in the Atlas]({href('atlas')}))."
                f"{FOLLOWS if follows else ''}"
            )
        )
    if asked:
        measure(found, asked)


def show_measured(runs: Sequence[Run], devices: Sequence[Device]) -> None:
    """Show how far the runs are that were started here, and what they found."""
    show_what_ended(runs, [result for device in devices for _, result in measured_results(device).found])
    for run in runs:
        show_run(run.id, _show_fastest, above=lambda _: None)


def _show_fastest(run: Run) -> None:
    fastest = analyze(run.results).fastest
    if fastest is None or fastest.median_s is None:
        return
    case = fastest.case
    what = f"{plain(case.implementation)} takes {format_seconds(fastest.median_s)}"
    st.markdown(
        f"Measured here: {what} at {shape_label(case.shape)} in {case.dtype}. "
        f"[Open in Benchmark]({href(f'benchmark?run={run.id}')})"
    )


def measure(found: ExploreFacts, asked: Any) -> None:
    """Queue what the browser asks for, an operation in a dtype, in `_quick_sizes` on the first device."""
    operation, dtype = (asked.get("op"), asked.get("dtype")) if isinstance(asked, dict) else (None, None)
    if operation not in list(OFFERED) or dtype not in dtypes_of(operation):  # no browser of ours sends that
        show_problem(InvalidInput.of("op and dtype", repr(asked)[:60], tuple(OFFERED)))
        return
    device = found.devices[0]
    chosen = _quick_sizes(found, operation, dtype)
    request = Request(operation, sizes=",".join(map(str, chosen)), dtypes=dtype, devices=device.id)
    start([resolve(request, [device.id])], found.devices)


def _quick_sizes(found: ExploreFacts, operation: str, dtype: str) -> list[int]:
    """Return the largest sizes that the first device is predicted to do within MAX_SECONDS a call."""
    times_s = found.times_s(operation, dtype, found.devices[0].id)
    return [size for size, time_s in times_s.items() if time_s <= MAX_SECONDS][-MAX_SIZES:]


@shared_values(20)
def _data(found: ExploreFacts, choice: ExploreChoice, *, can_run: bool) -> bytes:
    """Return what the controls need to draw and to say, as JSON: Streamlit would encode it twice for each page."""
    needed = {
        "chart": CHART,
        "state": {
            "op": choice.operation,
            "dtype": choice.dtype,
            "keys": list(choice.keys),
            "n": choice.size,
            "view": choice.view,
        },
        "operations": [
            {
                "name": name,
                "title": offered.title,
                "sizes": list(sizes(name)),
                "shapes": [shape_label(operation_named(name).shape_of_size(size)) for size in sizes(name)],
                "dtypes": list(dtypes_of(name)),
                "usual": offered.usual,
            }
            for name, offered in OFFERED.items()
        ],
        "devices": [
            *({"key": device.id, "name": found.name_of(device.id), "here": True} for device in found.devices),
            *({"key": key, "name": name, "here": False} for key, name in GPUS.items()),
        ],
        "views": VIEWS,
        "values": found.values,
        "run": "Run this here" if can_run else "",
    }
    return json.dumps(needed).encode()
