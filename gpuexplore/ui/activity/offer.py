"""The activity that a page is about: the one that was started here, else the newest alike, and the button for it."""

from datetime import timedelta

import streamlit as st

from gpuexplore.activity import Activity, ActivityRun
from gpuexplore.ui.activity.newest import newest_done
from gpuexplore.ui.activity.view import start_activity, started_activity


def started_or_newest(asked: Activity, within: timedelta) -> ActivityRun | None:
    """Return the activity the URL names if it is `asked`, else the newest like it; None where there is none.

    Args:
        within: how long ago the newest may have ended.
    """
    started = started_activity(asked.kind)
    if started is not None and started.activity == asked:
        return started
    return newest_done(asked, within)


def offer(asked: Activity, run: ActivityRun | None, label: str, *, icon: str) -> None:
    """Draw the button that starts `asked`: the page's primary one until it was done, disabled while `run` goes on.

    Args:
        run: what `started_or_newest` found.
        label: a verb; the device follows it.
        icon: of the button.
    """
    waits = run is not None and run.active
    again = run is not None and not waits
    words = f"{label}{' again' if again else ''} on {asked.device}"
    if st.button(words, type="secondary" if again else "primary", icon=icon, disabled=waits):
        start_activity(asked)
