"""One mistake made on purpose next to the right way, in the process that measures on a device."""

from collections.abc import Mapping

from gpuexplore.backends.timer import Clock
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device
from gpuexplore.core.serialization import encode
from gpuexplore.features.mistakes.catalog import MISTAKES, mistake_named
from gpuexplore.features.mistakes.catalog.contract import Stage
from gpuexplore.hardware import ensure_ceiling
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks


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
