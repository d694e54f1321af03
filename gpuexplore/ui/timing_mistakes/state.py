"""What is known of a mistake on a device: nothing yet, that it waits or failed, or what was observed."""

from datetime import UTC, datetime, timedelta

from gpuexplore.activity import Activity, ActivityRun, of_kind
from gpuexplore.mistakes import EXPECTED_S
from gpuexplore.mistakes.contract import Observation
from gpuexplore.model import Device
from gpuexplore.serialization import decode
from gpuexplore.ui.session import store
from gpuexplore.ui.shared import Shared, moment

KIND = "mistake"
NAME = "name"
WITHIN = timedelta(hours=1)
LOOKS = 10
NEWEST: Shared[ActivityRun | None] = Shared(100)


def activity_of(name: str, device: Device) -> Activity:
    """Return what to queue for the mistake `name` on `device`."""
    return of_kind(KIND, {NAME: name}, device=device.id, expected_s=EXPECTED_S)


def observation_for(name: str, device: Device, asked: ActivityRun | None) -> ActivityRun | None:
    """Return the activity that tells of the mistake `name`: the one that was asked for, else the newest of this hour.

    Args:
        asked: what the link names.
    """
    if asked is not None and asked.arguments[NAME] == name:
        return asked
    activity = activity_of(name, device)
    return NEWEST.get((activity, moment(LOOKS)), lambda: store().newest_activity(activity, _since_utc()))


def seen_in(run: ActivityRun) -> Observation:
    """Return what an activity observed; it has to have observed something."""
    return decode(Observation, run.payloads[-1])


def _since_utc() -> str:
    return (datetime.now(UTC) - WITHIN).isoformat(timespec="microseconds")
