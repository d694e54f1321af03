"""The queue on a page: one's own runs stand out, and can be opened and cancelled."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import altair as alt
import pandas as pd
import streamlit as st

import gpuexplore
from gpuexplore.activity import ActivityRun, kind_named, kinds
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core import GpuExploreError, Run, RunState, format_seconds, format_whole_seconds
from gpuexplore.jobs.server_settings import is_external
from gpuexplore.operations import operation_named
from gpuexplore.store import Supervisor, WaitingRun
from gpuexplore.store.turns import Restriction, RestrictionKind
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.roles import is_admin
from gpuexplore.ui.run.state import cancel
from gpuexplore.ui.session import note_visit, owner, store
from gpuexplore.ui.shared import shared_values
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import show_problem


@dataclass(frozen=True, slots=True)
class _Queue:
    """A snapshot of the queue from the database; `recent` are the runs that ended last."""

    recent: tuple[Run, ...]
    running: tuple[Run, ...]
    activities: tuple[ActivityRun, ...]
    waiting: tuple[WaitingRun, ...]
    length: int
    supervisors: tuple[Supervisor, ...]
    restrictions: tuple[Restriction, ...]

    @property
    def alive(self) -> frozenset[str]:
        return frozenset(supervisor.name for supervisor in self.supervisors if supervisor.alive)


def show_queue() -> None:
    """Show the queue; it redraws itself, for runs may be queued at any moment."""
    redrawn(_draw, 2.0)()


def _draw() -> None:
    try:
        note_visit()
        queue = _look()
    except GpuExploreError as error:
        show_problem(error)
        return
    _show_health(queue.supervisors)
    effects = {
        RestrictionKind.PAUSED: "Runs on it are queued and keep their results.",
        RestrictionKind.DRAINED: "The current run finishes; other runs on it are queued.",
        RestrictionKind.RESERVED: "Other users' runs on it are queued.",
    }
    for restriction in queue.restrictions:
        st.info(f"{plain(str(restriction))}. {effects[restriction.kind]}", icon=":material/pause_circle:")
    at_work: tuple[Run | ActivityRun, ...] = (*queue.running, *queue.activities)
    doing = "Running" if any(run.supervisor in queue.alive for run in at_work) else "Interrupted"
    # Drawn anew once a minute.
    rows = tuple(_rows(queue, datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)))
    said = f"Waiting: {queue.length}" if queue.length else "Queue empty"
    start = "" if at_work or queue.length else ": the next run starts as soon as it is queued"
    st.markdown(f"#### {f'{doing}: {len(at_work)}' if at_work else 'Nothing is running'}. {said}{start}.")
    show_chart(lambda: _timeline(rows), rows, key="chart.queue")
    for run in queue.running:
        operation = operation_named(run.experiment.operation).title
        words = (
            "**Your run**" if run.owner == owner() else "",
            f"{operation} on {plain(', '.join(_devices(run, queue.supervisors)))}",
            str(run.progress),
            f"{format_seconds(run.device_s)} of device time" if run.device_s else "",
            "" if run.supervisor in queue.alive else "**interrupted**",
        )
        with _with_controls(run.id, run.owner):
            st.progress(run.progress.share, text=" · ".join(filter(None, words)))
    for activity in queue.activities:
        kind = kind_named(activity.activity.kind)
        facts = (
            "**Yours**" if activity.owner == owner() else "",
            f"{kind.title} on {plain(activity.activity.device)}",
            "" if activity.supervisor in queue.alive else "**interrupted**",
        )
        with _with_controls(activity.id, activity.owner, kind.page):
            st.markdown(" · ".join(filter(None, facts)))
    _show_waiting(queue)
    _show_hosts(queue.supervisors)


@shared_values(1, looks=3)
def _look() -> _Queue:
    found = store()
    return _Queue(
        found.history(states=(RunState.DONE, RunState.CANCELLED), limit=40),
        found.running(),
        found.running_activities(),
        found.waiting(100),
        found.queue_length(),
        found.supervisors(),
        found.current_restrictions(),
    )


def _rows(queue: _Queue, now: datetime) -> Iterator[tuple[str, float, float, str, str]]:
    """Yield device, first and last minute from now, state and words of what is drawn; of each device the last hour."""
    alive = [supervisor for supervisor in queue.supervisors if supervisor.alive]
    several = len({supervisor.host for supervisor in alive}) > 1
    free = {f"{each.host}/{device.id}" if several else device.id: None for each in alive for device in each.devices}

    oldest = -60.0

    def minutes(utc: str | None) -> float:
        return max(oldest, (datetime.fromisoformat(utc) - now).total_seconds() / 60) if utc else 0.0

    for run in (*queue.recent, *queue.running):
        if run.started_utc and not run.origin and minutes(run.finished_utc) > oldest:
            ends = (minutes(run.started_utc), minutes(run.finished_utc), "ended" if run.finished_utc else "running")
            for device in _devices(run, queue.supervisors):
                yield device, *ends, operation_named(run.experiment.operation).title
    for activity in queue.activities:
        what = kind_named(activity.activity.kind).title
        yield activity.activity.device, minutes(activity.started_utc), 0.0, "running", what
    for each in queue.waiting:
        if each.expected_start_s is not None:
            first = each.expected_start_s / 60
            for device in each.devices:
                yield device, first, first + each.estimated_s / 60, "waiting", f"number {each.position}"
    for device in free:
        yield device, oldest, 0.0, "", ""


def _timeline(rows: Sequence[tuple[str, float, float, str, str]]) -> alt.LayerChart:
    """Return the last hour of each device and the expected starts of what waits, minutes from now on one axis."""
    frame = pd.DataFrame(rows, columns=["device", "first", "last", "state", "words"])
    names = sorted(set(frame["device"]))
    scale = alt.Scale(domain=[min(frame["first"], default=-60.0), max([5.0, *frame["last"]])], nice=False)
    label = "datum.value == 0 ? 'now' : format(datum.value, '+d') + ' min'"
    states = alt.Scale(domain=["ended", "running", "waiting"], range=[NEUTRAL, "#00816e", "#c6871c"])
    x = alt.X("first:Q", title=None, scale=scale, axis=alt.Axis(labelExpr=label, tickCount=7, grid=False))
    bars = (
        alt.Chart(frame)
        .transform_filter("datum.state")
        .mark_bar(strokeWidth=2, height={"band": 0.6})
        .encode(
            y=alt.Y("device:N", sort=names, title=None),
            x=x,
            x2="last:Q",
            color=alt.Color(
                "state:N", scale=states, legend=alt.Legend(title=None, orient="top") if any(frame["state"]) else None
            ),
            stroke=alt.Stroke("state:N", scale=states, legend=None),
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("device", "state", "words")],
        )
    )
    hours = alt.Chart(frame).transform_filter("!datum.state")
    idle = hours.mark_bar(opacity=0.12, color=NEUTRAL, height={"band": 0.6}, tooltip=None)
    now = hours.mark_rule(strokeDash=[3, 3], color=NEUTRAL).encode(x=alt.X("last:Q"))
    counts = ", ".join(f"{state} {sum(row[3] == state for row in rows)}" for state in ("ended", "running", "waiting"))
    description = f"The last hour of {', '.join(names) or 'no device'}: {counts}."
    lanes = idle.encode(y=alt.Y("device:N", sort=names, title=None), x=x, x2="last:Q")
    chart: alt.LayerChart = alt.LayerChart(layer=[lanes, bars, now])
    return chart.properties(
        width="container", height=(95 if any(frame["state"]) else 60) + 40 * len(names), description=description
    )


def _devices(run: Run, supervisors: Sequence[Supervisor]) -> list[str]:
    """Return the names of its devices, with their host where there is more than one."""
    hosts = {supervisor.name: supervisor.host for supervisor in supervisors}
    host = hosts.get(run.supervisor or "") if len(set(hosts.values())) > 1 else None
    return [f"{host}/{device}" if host and "/" not in device else device for device in run.experiment.devices]


def _show_waiting(queue: _Queue) -> None:
    if not queue.waiting:
        idle = not (queue.running or queue.activities)
        if idle and st.button("Measure something", type="primary", icon=":material/play_arrow:"):
            st.switch_page(file_of("benchmark"))
        return
    for run in queue.waiting:
        if _may_cancel(run.owner):
            with _with_controls(run.id, run.owner, kinds()[run.kind].page if run.kind in kinds() else ""):
                whose = "Your run" if run.owner == owner() else "A visitor's run"
                st.markdown(f"**{whose} is number {run.position}** · {_start(run)}")
    rows = [
        {
            "Position": run.position,
            "Whose": "yours" if run.owner == owner() else "room leader" if run.of_leader else "",
            "Expected start": None if run.expected_start_s is None else round(run.expected_start_s),
            "Expected time": run.estimated_s,
            "Devices": ", ".join(run.devices),
        }
        for run in queue.waiting
    ]
    table_of(rows, {"Expected start": "s", "Expected time": "s"}).show(
        alt=f"Table of {len(queue.waiting)} waiting runs with position, expected start, expected time and devices"
    )
    if queue.length > len(queue.waiting):
        st.caption(f"{queue.length - len(queue.waiting):,} more runs are queued behind these.")
    st.caption(
        "Order: first passes before refinements, a room leader's runs before others, then users with the least device "
        "time in the last hour. After 5 seconds on its devices, a run is preempted by waiting runs and continues "
        "afterwards."
    )


def _start(run: WaitingRun) -> str:
    if run.restriction:
        return plain(run.restriction)
    if run.expected_start_s is None:
        return "no connected host has its devices"
    if run.expected_start_s < 1:
        return "expected to start now"
    return f"expected to start in about {format_whole_seconds(run.expected_start_s)}"


def _may_cancel(run_owner: str) -> bool:
    return run_owner == owner() or is_admin()


@contextmanager
def _with_controls(run_id: str, run_owner: str, page: str = "") -> Iterator[None]:
    """Frame a run that the visitor may cancel, next to buttons that open and cancel it; draw another's as it is.

    Args:
        page: the `url_path` of the page that shows it; empty for the benchmark.
    """
    if not _may_cancel(run_owner):
        yield
        return
    with st.container(border=True):
        facts, buttons = st.columns([3, 1], vertical_alignment="center")
        with buttons.container(horizontal=True, horizontal_alignment="right"):
            if st.button("Open", icon=":material/visibility:", key=f"open.{run_id}"):
                if page:
                    st.switch_page(file_of(page), query_params={"activity": run_id})
                st.switch_page(file_of("benchmark"), query_params={"run": run_id})
            if st.button("Cancel", icon=":material/stop:", key=f"cancel.{run_id}") and cancel(run_id):
                _look.forget()
                st.rerun()
        with facts:
            yield


def _show_health(supervisors: Sequence[Supervisor]) -> None:
    """Say in a sentence what keeps runs from being measured as they should; nothing when all is well."""
    alive = [supervisor for supervisor in supervisors if supervisor.alive]
    if not alive:
        st.warning(_no_supervisor_words(supervisors), icon=":material/cloud_off:")
    elif other := [supervisor for supervisor in alive if supervisor.version != gpuexplore.__version__]:
        listed = ", ".join(f"{plain(supervisor.host)} ({plain(supervisor.version)})" for supervisor in other)
        st.warning(f"Another version than this server's {gpuexplore.__version__} measures on {listed}.")


def _show_hosts(supervisors: Sequence[Supervisor]) -> None:
    """Show who measures on what; who was replaced by another one of its host is left out."""
    served = {supervisor.host for supervisor in supervisors if supervisor.alive}
    shown = [supervisor for supervisor in supervisors if supervisor.alive or supervisor.host not in served]
    if not shown:
        return
    st.subheader("Hosts", anchor="hosts")
    states = {"warming": "loading libraries"}
    rows = [
        {
            "Host": supervisor.host,
            "State": states.get(supervisor.state, supervisor.state) if supervisor.alive else "not responding",
            "Devices": ", ".join(f"{device.id} ({device.short_title})" for device in supervisor.devices),
            "Silent for": None if supervisor.alive else round(supervisor.age_s),
            "Version": supervisor.version,
        }
        for supervisor in shown
    ]
    table_of(rows, {"Silent for": "s"}).show(
        alt=f"Table of {len(shown)} hosts that measure, with their state, devices and version"
    )


def _no_supervisor_words(supervisors: Sequence[Supervisor]) -> str:
    if supervisors:
        age_s = min(supervisor.age_s for supervisor in supervisors)
        return (
            f"The measuring process does not respond: it last reported {format_whole_seconds(age_s)} ago. It is "
            "replaced within half a minute, and its runs continue."
        )
    why = "The measuring process is starting: a few seconds"
    if is_external():
        why = "No measuring process runs, and this server does not start one: start `gpuexplore-supervisor`"
    return f"{why}. Runs can be queued in the meantime."
