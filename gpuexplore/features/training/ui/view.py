"""A training on a page: what to train, the losses live, then the times, phases, scaler and processes."""

from datetime import timedelta

import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.errors import GpuExploreError
from gpuexplore.features.training.chart import losses, phases, scales
from gpuexplore.features.training.measure import TrainingReport, activity_of, joined
from gpuexplore.features.training.ui.choice import choose, gpu_count_of
from gpuexplore.features.training.ui.findings import show_findings
from gpuexplore.ui.activity.offer import offer, started_or_newest
from gpuexplore.ui.activity.view import show_activity
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.url_widgets import device, show_problem
from gpuexplore.units import format_percent

TRAIN_ICON = ":material/model_training:"
KNOWN_FOR = timedelta(days=30)  # after that somebody trains it again


def show_training() -> None:
    """Show the choices, and the training that was started with them, or the newest one like it."""
    devices = known_devices()
    given = choose(devices)
    place = device(devices)
    try:
        asked = activity_of(given, place, gpu_count_of(devices))
    except GpuExploreError as error:
        show_problem(error)
        st.button("Train", type="primary", icon=TRAIN_ICON, disabled=True)
        return
    run = started_or_newest(asked, KNOWN_FOR)
    offer(asked, run, "Train", icon=TRAIN_ICON)
    if run is None:
        st.caption("Not trained on this server yet.")
    else:
        show_activity(run, _draw)


def _draw(run: ActivityRun) -> None:
    report = joined(run.payloads)
    if report is None:
        return
    if run.active:
        done = report.steps_done / report.steps
        st.progress(done, report.doing or f"Step {report.steps_done} of {report.steps}")
    key = (run.id, len(run.payloads))
    if report.steps_done:
        _draw_charts(report, key)
    show_findings(report, key)
    if report.stopped:
        st.info(f"{report.steps_done} of {report.steps} steps: {plain(report.stopped)}.", icon=":material/timer_off:")
    if report.is_contended:
        st.warning(
            f"Contended: other work took {format_percent(report.lost_cpu_share)} of the CPU meanwhile. Losses are not "
            f"touched by that; times are. Train again when nothing else runs.",
            icon=":material/groups:",
        )
    if report.is_contention_unknown:
        st.caption("The system does not tell what other work took of the CPU meanwhile.")


def _draw_charts(report: TrainingReport, key: tuple[str, int]) -> None:
    show_chart(lambda: losses(report), key, key="chart.training.losses")
    if report.data == "random":
        st.caption(
            f"The labels are drawn by lot, so there is nothing to learn: on samples never seen no honest mean loss is "
            f"below ln {report.classes} = {report.chance_loss:.3f}. One batch can be, by luck."
        )
    if any(mode.phases for mode in report.modes):
        show_chart(lambda: phases(report), key, key="chart.training.phases")
    if any(mode.scales for mode in report.modes):
        show_chart(lambda: scales(report), key, key="chart.training.scales")
