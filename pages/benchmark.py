"""Benchmark, the start page: describe an experiment, run it with one click, see what it means."""

import streamlit as st

from gpuexplore.analysis.run.estimate import check_limits, estimate
from gpuexplore.charts import peaks
from gpuexplore.devices.first_dtypes import first_dtypes
from gpuexplore.errors import InvalidInput, NotFound
from gpuexplore.request import Request, from_experiment, resolve, with_defaults
from gpuexplore.ui.benchmark import settings
from gpuexplore.ui.benchmark.form import experiment_form
from gpuexplore.ui.benchmark.slow import measured_on, offer_to_leave_out
from gpuexplore.ui.benchmark.welcome import offer_tour
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.recorded import offer_recorded_runs
from gpuexplore.ui.run.state import fetch, request_of
from gpuexplore.ui.run.submit import start
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.units import format_bytes, format_seconds

st.title("Benchmark")
st.caption(
    "How fast an operation runs on this machine, how fast it could run, and what limits it.",
    help=page_help("benchmark"),
)
open_page("benchmark")

devices = known_devices()
ids = [device.id for device in devices]
run_id = st.query_params.get("run")
if not run_id:
    offer_tour()


first = Request(dtypes=first_dtypes(devices))


def settings_of_run() -> Request:
    """Return the settings the shown run was made with, so that its link restores them."""
    try:
        return request_of(fetch(run_id), ids) if run_id else first
    except NotFound:
        return first


shown = settings_of_run()
settings.restore(shown, ids)
if problems := settings.problems_of_link():
    listed = "".join(f"\n- {plain(problem)}" for problem in problems)
    st.warning(f"Some values in this link are invalid; defaults were used:{listed}", icon=":material/link:")
request = experiment_form(devices)
settings.write(request, ids)

try:
    experiment = resolve(request, ids)
    check_limits(experiment, devices)
except InvalidInput as error:
    for line in str(error).splitlines():
        st.error(plain(line), icon=":material/error:")
    st.button("Run", type="primary", disabled=True, icon=":material/play_arrow:")
else:
    request = with_defaults(from_experiment(experiment), ids)  # a range is read as the sizes that a run names
    earlier = [result for device in devices if device.id in experiment.devices for result in measured_on(device)]
    expected = estimate(experiment, devices, earlier)
    points = "1 point" if expected.cases == 1 else f"{expected.cases} points"
    button, words = st.columns([1, 4], vertical_alignment="center")
    with button:
        if st.button(f"Run {points}", type="primary", icon=":material/play_arrow:", width="stretch"):
            start([experiment], devices, "run")
    words.caption(
        f"{points}, about {format_seconds(expected.seconds)}, usually {format_seconds(expected.seconds_low)} to "
        f"{format_seconds(expected.seconds_high)}; the largest needs {format_bytes(expected.bytes_largest)}."
    )
    offer_to_leave_out(expected, experiment)

if run_id:
    if request != with_defaults(shown, ids):
        st.caption(":material/edit: The settings differ from those of the run below: press **Run** to measure them.")
    show_run(run_id)
else:
    st.info(
        "Nothing is measured yet. Press **Run**: the first results appear within a second or two.",
        icon=":material/insights:",
    )
    offer_recorded_runs(request.operation)
    if any(device.peaks for device in devices):
        st.markdown("**Peak matmul throughput of this machine**")
        show_chart(lambda: peaks(devices), devices, key="chart.peaks")
