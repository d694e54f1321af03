"""Activities on a page: started by a button, named in the URL, drawn as they go, cancelled by their owner."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.activity import Activity, ActivityRun, kind_named
from gpuexplore.core import Device, InvalidInput, NotFound, Run, RunState, StoreUnavailable, format_whole_seconds
from gpuexplore.hardware.identity import device_key
from gpuexplore.ui.identity import address
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import Right, check, may_cancel
from gpuexplore.ui.run.state import cancel, changed, fetch_activity, position, waiting_words
from gpuexplore.ui.run.view import waiting_tick_s
from gpuexplore.ui.session import is_silent, known_devices, live_supervisor, note_visit, owner, store, why_silent
from gpuexplore.ui.shared import shared_values
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.pace import PACE, SHORTEST_S, in_turn
from gpuexplore.ui.undocumented import is_fragment_rerun, session_id
from gpuexplore.ui.url_widgets import show_missing, show_problem

PARAMETER = "activity"  # the URL's, which names the one that was started here
Draw = Callable[[ActivityRun], None]


def start_activity(activity: Activity) -> None:
    """Queue `activity` and show the page again, or say why it cannot be queued."""
    try:
        check(Right.MEASURE)
        run_id = store().submit(activity, owner(), address=address())
    except (InvalidInput, StoreUnavailable) as error:
        show_problem(error)
        return
    st.query_params[PARAMETER] = run_id
    changed()
    st.rerun()


def started_activity(*kinds: str) -> ActivityRun | None:
    """Return the activity the URL names; None where it names none of `kinds`, which the page is shown."""
    run_id = st.query_params.get(PARAMETER, "")
    if not run_id:
        return None
    try:
        found = fetch_activity(run_id)
    except NotFound as error:
        show_missing(error)
        return None
    if found.activity.kind in kinds:
        return found
    st.warning(
        f"The link belongs to another page: {kind_named(found.activity.kind).title.lower()}.", icon=":material/link:"
    )
    return None


def show_activity(run: ActivityRun, draw: Draw) -> None:
    """Show an activity: its state, and by `draw` what it has observed, redrawn until it ends.

    Args:
        draw: gets the activity as it is; called once there is an observation, or it has ended well.
    """
    with st.container():  # one container for what follows, as of a run
        if run.active and may_cancel(run):
            _, button = st.columns([6, 1])  # a row of its own: what is drawn below may need the whole width
            key = f"cancel.{run.id}"
            if button.button("Cancel", icon=":material/stop:", width="stretch", key=key) and cancel(run.id):
                st.rerun()
    tick_s = _tick_s(run)
    redrawn(_tick, tick_s)(run.id, tick_s, draw)


def _tick_s(run: ActivityRun, current_s: float | None = None) -> float | None:
    """Return how often an activity is redrawn: soon for its owner at first, then as there is time; None at its end."""
    if not run.active:
        return None
    waits_s = waiting_tick_s(run.id)
    if waits_s is not None:
        return waits_s
    return 0.5 if not run.payloads and run.owner == owner() else PACE.interval_s(session_id(), current_s)


def _tick(run_id: str, registered_s: float | None, draw: Draw) -> None:
    note_visit()
    try:
        with in_turn():
            run = fetch_activity(run_id)
            changes = _tick_s(run, registered_s) != registered_s or (registered_s is None and is_fragment_rerun())
            if changes and (run.owner == owner() or PACE.admits_page()):
                st.rerun()  # the whole page, so that the right tick is registered
            _draw(run, registered_s, draw)
    except StoreUnavailable as error:  # the next tick asks again
        show_problem(error)


def _draw(run: ActivityRun, registered_s: float | None, draw: Draw) -> None:
    started_s = time.thread_time()
    if run.active and registered_s and registered_s > SHORTEST_S and run.payloads:
        every = format_whole_seconds(registered_s)
        st.caption(
            f":material/hourglass_top: Many viewers: this is redrawn every {every}, to save CPU time for the work."
        )
    if run.active:
        st.markdown(f":material/hourglass_top: {pending_words(run)}")
    elif run.state is RunState.FAILED:
        st.error(f"This failed: {plain(run.reason or '')}", icon=":material/error:")
    elif run.state is RunState.CANCELLED:
        st.info(f"{plain((run.reason or 'cancelled').capitalize())}.", icon=":material/cancel:")
    if run.payloads:
        draw(run)
    if run.active:
        PACE.note(time.thread_time() - started_s)


def pending_words(run: Run | ActivityRun) -> str:
    """Return what work that has not ended waits for, or how far it is."""
    if live_supervisor() is None:
        if not is_silent():
            return "The measuring process is starting"
        return plain(str(why_silent() or "The measuring process does not respond: it is being replaced"))
    if run.state is RunState.QUEUED:
        return waiting_words(position(run.id))
    if isinstance(run, Run):
        return f"Measuring: {run.progress.done} of {run.progress.total}"
    return f"Running on {plain(run.activity.device)}: about {format_whole_seconds(run.activity.expected_s)} in total"


def show_newest(  # noqa: PLR0913 one decides where
    asked: Activity,
    within: timedelta,
    draw: Draw,
    *,
    missing: str | Callable[[], None],
    label: str,
    line: DeltaGenerator | None = None,
) -> None:
    """Show a button that starts `asked`, and the activity the URL names if it is that, else the newest like it.

    The button is the page's primary one until it was done, and disabled while it goes on.

    Args:
        within: how long ago the newest may have ended.
        missing: the caption where there is none, or draws what is shown then.
        label: of the button, a verb; the device follows it.
        line: where the button stands; None is above what is drawn.
    """
    run = started_activity(asked.kind)
    if run is None or run.activity != asked:
        run = newest_done(asked, within)
    waits = run is not None and run.active
    again = run is not None and not waits
    words = f"{label}{' again' if again else ''} on {asked.device}"
    if (line or st).button(
        words, type="secondary" if again else "primary", icon=":material/play_arrow:", disabled=waits
    ):
        start_activity(asked)
    if run is None:
        (missing if callable(missing) else partial(st.caption, missing))()
    else:
        show_activity(run, draw)


def newest_done(activity: Activity, within: timedelta) -> ActivityRun | None:
    """Return the newest activity that was done as `activity` asks for it, by any visitor; None where there is none.

    What another machine did on a device of the same id or name does not count: a home or a database may be shared.

    Args:
        within: how long ago it may have ended.
    """
    return _newest_done(activity, within, frozenset(device_key(device) for device in devices_of(activity.device)))


@shared_values(500, looks=3)
def _newest_done(activity: Activity, within: timedelta, keys: frozenset[str]) -> ActivityRun | None:
    since_utc = (datetime.now(UTC) - within).isoformat(timespec="microseconds")
    return store().newest_activity(activity, since_utc, device_keys=keys)


def devices_of(device_id: str) -> tuple[Device, ...]:
    """Return the devices of this server that runs ask for as `device_id`: `cuda:0` on any host, or `lab1/cuda:0`."""
    return tuple(device for device in known_devices() if device_id in (device.id, device.id.rpartition("/")[2]))
