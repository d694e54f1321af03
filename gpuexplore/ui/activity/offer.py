"""The activity that a page is about: the one that was started here, else the newest alike, and the button for it."""

from datetime import UTC, datetime, timedelta

import streamlit as st

from gpuexplore.activity import Activity, ActivityRun
from gpuexplore.devices.identity import device_key
from gpuexplore.model import Device
from gpuexplore.ui.activity.view import start_activity, started_activity
from gpuexplore.ui.session import known_devices, store
from gpuexplore.ui.shared import Shared, moment

LOOKS = 3
NEWEST: Shared[ActivityRun | None] = Shared(500)


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


# What was done here alike before: looked up once for all visitors.


def newest_done(activity: Activity, within: timedelta) -> ActivityRun | None:
    """Return the newest activity that was done as `activity` asks for it, everybody's; None where there is none.

    What another machine did on a device of the same id or name does not count: a home or a database may be shared.

    Args:
        within: how long ago it may have ended.
    """
    since_utc = (datetime.now(UTC) - within).isoformat(timespec="microseconds")
    keys = device_keys(activity.device)
    return NEWEST.get(
        (activity, within, keys, moment(LOOKS)),
        lambda: store().newest_activity(activity, since_utc, device_keys=keys),
    )


def device_keys(device_id: str) -> frozenset[str]:
    """Return the keys of the devices of this server that runs ask for as `device_id`, with or without a host."""
    return frozenset(device_key(device) for device in devices_of(device_id))


def devices_of(device_id: str) -> tuple[Device, ...]:
    """Return the devices of this server that runs ask for as `device_id`: `cuda:0` on any host, or `lab1/cuda:0`."""
    return tuple(device for device in known_devices() if device_id in (device.id, device.id.rpartition("/")[2]))
