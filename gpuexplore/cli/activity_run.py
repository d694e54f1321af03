"""Activities from the command line: performed in a worker of their own, as in the app."""

from collections.abc import Callable

from gpuexplore.activity import Activity, ActivityReport, Payload
from gpuexplore.cli.device_locking import report_lock_holder
from gpuexplore.core.errors import check_known
from gpuexplore.hardware import discover
from gpuexplore.jobs.engines.local import LocalEngine


def perform(activity: Activity, on_payload: Callable[[Payload], None] = lambda _: None) -> tuple[Payload, ...]:
    """Do `activity` on this machine; return what it observed, in the order of arrival.

    Raises:
        InvalidInput: its device is not here.
        GpuExploreError: it failed; the text says why.
    """
    devices = {device.id: device for device in discover()}
    check_known("device", activity.device, devices)
    engine = LocalEngine([devices[activity.device]])
    try:
        report_lock_holder(devices[activity.device])
        return perform_on(engine, activity, on_payload)
    finally:
        engine.close()


def perform_on(
    engine: LocalEngine, activity: Activity, on_payload: Callable[[Payload], None] = lambda _: None
) -> tuple[Payload, ...]:
    """Do `activity` on an engine that is open; see `perform`."""
    observed: list[Payload] = []

    def take(observation: ActivityReport) -> None:
        observed.append(observation.payload)
        on_payload(observation.payload)

    engine.perform(activity, take, lambda: False)
    return tuple(observed)
