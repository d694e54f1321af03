"""What was done here alike before: looked up once for all visitors."""

from datetime import UTC, datetime, timedelta

from gpuexplore.activity import Activity, ActivityRun
from gpuexplore.devices.identity import device_key
from gpuexplore.model import Device
from gpuexplore.ui.session import known_devices, store
from gpuexplore.ui.shared import Shared, moment

LOOKS = 3
NEWEST: Shared[ActivityRun | None] = Shared(500)


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
