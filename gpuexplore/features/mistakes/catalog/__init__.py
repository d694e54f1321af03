"""Measuring mistakes made on purpose, as activities: a file for each kind, their texts in `mistakes.toml`."""

from collections.abc import Mapping

from gpuexplore.activity import Activity, of_kind
from gpuexplore.backends.timer import Clock
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device
from gpuexplore.core.serialization import encode
from gpuexplore.features.mistakes.catalog.contract import MISTAKES, Mistake, Stage
from gpuexplore.hardware import check_measured_on, ensure_ceiling
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks

KIND = "mistake"  # of its activities
EXPECTED_S = 5.0  # that a demonstration takes


def activity_of(name: str, device_id: str = "cpu") -> Activity:
    """Return the work for the queue that makes the mistake `name` on a device.

    Raises:
        Unsupported: mistakes were not made for this kind of device.
    """
    check_measured_on(device_id, f"the mistake {name}")
    return of_kind(KIND, {"name": name}, device=device_id, expected_s=EXPECTED_S)


def mistake_named(name: str) -> Mistake:
    """Return the mistake called `name`.

    Raises:
        InvalidInput: no such mistake.
    """
    if name not in MISTAKES:
        raise InvalidInput.of("mistake", name, MISTAKES)
    return MISTAKES[name]


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Report the observation of the mistake that `arguments` name, as JSON.

    Args:
        arguments: `name` is that of the mistake.
        device: where it is made; a CPU's peaks are measured first where they are unknown.
        clock: in nanoseconds.
        isolation: of the calls.
        progress: gets a `MistakeObservation` that was encoded; polled between rounds.

    Raises:
        InvalidInput: no such mistake.
        Unsupported: it cannot be made on this kind of device.
        Cancelled: the user asked to stop.
    """
    if "name" not in arguments:
        raise InvalidInput.of("mistake", None, MISTAKES)
    mistake = mistake_named(arguments["name"])
    is_known = bool(device.peaks) or not mistake.live_on
    stage = Stage(device if is_known else ensure_ceiling(device), clock, isolation, progress)
    progress.report(encode(mistake.observe(stage)))
