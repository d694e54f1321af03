"""What is known of a mistake on a device: nothing yet, that it waits or failed, or what was observed."""

from datetime import timedelta

from gpuexplore.activity import ActivityRun
from gpuexplore.features.mistakes.catalog import activity_of
from gpuexplore.features.mistakes.catalog.contract import Observation
from gpuexplore.model import Device
from gpuexplore.serialization import decode
from gpuexplore.ui.activity.newest import newest_done

NAME = "name"
WITHIN = timedelta(hours=1)


def observation_for(name: str, device: Device, asked: ActivityRun | None) -> ActivityRun | None:
    """Return the activity that tells of the mistake `name`: the one that was asked for, else the newest of this hour.

    Args:
        asked: what the link names.
    """
    if asked is not None and asked.arguments[NAME] == name:
        return asked
    return newest_done(activity_of(name, device.id), WITHIN)


def seen_in(run: ActivityRun) -> Observation:
    """Return what an activity observed; it has to have observed something."""
    return decode(Observation, run.payloads[-1])
