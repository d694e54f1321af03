"""The request above a run: the form, its slow parts named before it is run, or one line where the run is shown."""

from collections.abc import Sequence
from importlib import import_module

import streamlit as st

from gpuexplore.analysis.run.estimate import CostEstimate, check_limits, estimate
from gpuexplore.core.errors import InvalidInput, NotFound, StoreUnavailable
from gpuexplore.core.model import Device, Experiment, Result, Run
from gpuexplore.core.naming import said_of_arrays
from gpuexplore.core.units import format_bytes, format_seconds
from gpuexplore.recorded import recording_of_run
from gpuexplore.registry import Position, features
from gpuexplore.request import Request, from_experiment, resolve, with_defaults
from gpuexplore.ui.benchmark import settings
from gpuexplore.ui.benchmark.form import experiment_form
from gpuexplore.ui.benchmark.settings import key
from gpuexplore.ui.known_results import measured_results
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.state import askers, fetch, is_mine
from gpuexplore.ui.run.submit import ask as ask_for
from gpuexplore.ui.run.submit import start
from gpuexplore.ui.session import owner
from gpuexplore.ui.url_widgets import operation_title

OPEN = "form.open"  # the session's key of the run above which the form stands open


def _measured_on(device: Device) -> list[Result]:
    """Return what was measured on `device` before; nothing while the database is away."""
    try:
        return [result for _, result in measured_results(device).found]
    except StoreUnavailable:
        return []


def _offer_to_leave_out(expected: CostEstimate, experiment: Experiment) -> None:
    """Name the slowest part of an experiment, where one stands out, beside buttons for the rest without it."""
    if not expected.slow:
        return
    dtype, implementation = next(iter(expected.slow))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/hourglass: {expected.slow_parts[0]}.", width="content")
        _offer("dtypes", dtype, experiment.dtypes)
        _offer("implementations", implementation, experiment.implementations)


def _offer(name: str, slow: str, chosen: Sequence[str]) -> None:
    rest = [value for value in chosen if value != slow]
    if rest:
        st.button(f"Leave out {slow}", key=f"slow.{name}", on_click=_choose, args=(name, rest))


def _choose(name: str, rest: list[str]) -> None:
    st.session_state[key(name)] = rest


def ask(devices: Sequence[Device], shown: Request, run_id: str | None) -> Request:
    """Draw what is asked for, with a button that measures it, and return it.

    Args:
        devices: what can be measured on.
        shown: the settings of the run that is shown, or of a first visit.
        run_id: the run that is shown; None for none.
    """
    ids = [device.id for device in devices]
    as_linked = settings.current()
    if run_id and st.session_state.get(OPEN) != run_id and _in_full(as_linked, ids) == _in_full(shown, ids):
        return _folded(devices, with_defaults(shown, ids), run_id)
    request = experiment_form(devices)
    settings.write(request, ids)
    return _with_button(devices, request)


def _in_full(request: Request, ids: Sequence[str]) -> Request:
    """Return `request` as a run of it is described: `256 1k` and `256,1024` are the same sizes."""
    try:
        return with_defaults(from_experiment(resolve(request, ids)), ids)
    except InvalidInput:
        return with_defaults(request, ids)


def _folded(devices: Sequence[Device], request: Request, run_id: str) -> Request:
    """Draw the request in one line; where it can be measured here, with a button that does so (again)."""
    experiment, problem, elsewhere = None, "", _is_of_elsewhere(run_id)
    do = "Run here" if elsewhere else "Run again"
    try:
        experiment = _checked(devices, request)
    except InvalidInput as error:
        problem = str(error)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":small[{plain(_in_a_line(request, elsewhere=elsewhere))}]", width="stretch")
        if st.button("Edit", icon=":material/tune:"):
            st.session_state[OPEN] = run_id
            st.rerun()
        if experiment is None:
            st.button(do, icon=":material/play_arrow:", disabled=True, help=plain(problem))
        elif st.button(do, icon=":material/play_arrow:"):
            ask_for(experiment, devices)
    return request


def _is_of_elsewhere(run_id: str) -> bool:
    """Return whether a run was measured on another machine or at another time: a recorded one, or an imported one."""
    try:
        run = fetch(run_id)
    except NotFound:
        return False
    return recording_of_run(run_id) is not None or bool(run.origin)


def _in_a_line(request: Request, *, elsewhere: bool) -> str:
    """Return ``Matrix multiplication, 4 sizes, 3 dtypes, 3 implementations, cpu``; of elsewhere, ``here on cpu``."""
    shapes = request.shapes.split(";") if request.shapes else request.sizes.split(",")
    what = "shape" if request.shapes else "size"
    parts = [
        operation_title(request.operation),
        _counted(shapes, what),
        _counted(request.dtypes.split(","), "dtype"),
        _counted(request.implementations.split(","), "implementation"),
        f"{'here on ' if elsewhere else ''}{request.devices.replace(',', ', ')}",
        *said_of_arrays(request.layout, request.align),
    ]
    return ", ".join(parts)


def _counted(words: Sequence[str], what: str) -> str:
    """Return one word as it is, and how many there are of several."""
    if len(words) == 1:
        return f"{what} {words[0].strip()}" if what in ("size", "shape") else words[0].strip()
    return f"{len(words)} {what}s"


def _checked(devices: Sequence[Device], request: Request) -> Experiment:
    experiment = resolve(request, [device.id for device in devices])
    check_limits(experiment, devices)
    return experiment


def _with_button(devices: Sequence[Device], request: Request) -> Request:
    """Draw the button that measures what the form holds, with how long that takes, or why it cannot be measured."""
    try:
        experiment = _checked(devices, request)
    except InvalidInput as error:
        for line in str(error).splitlines():
            st.error(plain(line), icon=":material/error:")
        st.button("Run", type="primary", disabled=True, icon=":material/play_arrow:")
        return request
    earlier = [result for device in devices if device.id in experiment.devices for result in _measured_on(device)]
    expected = estimate(experiment, devices, earlier)
    points = "1 point" if expected.cases == 1 else f"{expected.cases} points"
    button, words = st.columns([1, 4], vertical_alignment="center")
    with button:
        if st.button(f"Run {points}", type="primary", icon=":material/play_arrow:", width="stretch"):
            ask_for(experiment, devices)
    words.caption(
        f"{points}, about {format_seconds(expected.seconds)}, usually {format_seconds(expected.seconds_low)} to "
        f"{format_seconds(expected.seconds_high)}; the largest needs {format_bytes(expected.bytes_largest)}."
    )
    _offer_to_leave_out(expected, experiment)
    return with_defaults(from_experiment(experiment), [device.id for device in devices])


def show_askers(run: Run, devices: Sequence[Device]) -> None:
    """Say to whoever asked for a run that others did too; one who does not own it may measure their own."""
    others = len(askers(run))
    if not others or not is_mine(run):
        return
    who = "1 other" if others == 1 else f"{others} others"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        how = "is measured" if run.active else "was measured"
        st.caption(f":material/group: {who} asked for the same: it {how} once for all.", width="content")
        if run.owner != owner() and st.button("Measure my own", icon=":material/play_arrow:"):
            start([run.experiment], devices, "run")


def show_offers(place: Position, devices: Sequence[Device]) -> None:
    """Show what features offer at one place of the page before something is measured, in their order."""
    for feature in features():
        if place in feature.offers:
            import_module(feature.offers[place]).offer(devices)
